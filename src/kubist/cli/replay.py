"""`kubist replay`: sends the requests of a recording or audit log to a server, and reports different statuses."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from kubist.cli import flags, help
from kubist.cli.exits import FAILED, OK, USAGE, fail

if TYPE_CHECKING:
    from kubist.testbench.replay.client import ReplayClient
    from kubist.testbench.replay.replay import Report

OUTPUTS = ("text", "json")
ACCESS = ("kubeconfig", "server", "token", "certificate-authority")
"""Flags that name the server."""
FLAGS = (
    flags.Flag("kubeconfig", "string", "", "Kubeconfig of the server; a new server in memory by default."),
    flags.Flag("server", "string", "", "URL of the server, instead of that of the kubeconfig."),
    flags.Flag("token", "string", "", "Bearer token, with --server."),
    flags.Flag("certificate-authority", "string", "", "File with the certificate of the server's authority."),
    flags.Flag("impersonate", "bool", "false", "Send each request as its recorded user."),
    flags.Flag("output", "string", "text", "Form of the report: text or json."),
)
TITLE = """\
Sends the requests of a recording, or of an audit log (audit.k8s.io/v1), to a server in their order. Reports the
requests whose status differs from the recorded one. Without --kubeconfig or --server it starts a new server in memory.

Exit codes: 0 if no status differs, 1 if one does, 2 if the file is malformed.

Usage:
  kubist replay FILE [flags]

Example:
  kubist replay audit.log --impersonate"""
MOST_SKIPS = 10
"""Maximum number of lines about skipped requests."""


def main(arguments: list[str]) -> int:
    known = {flag.name: flag for flag in FLAGS}
    sources = [word for word in arguments[:1] if not word.startswith("-")]
    values = flags.parse(arguments[len(sources) :], known)
    if "help" in values:
        return help.show(TITLE, FLAGS)
    if not sources:
        raise flags.FlagError("no file: the usage is kubist replay FILE [flags]")
    output = values.get("output", ["text"])[-1]
    if output not in OUTPUTS:
        raise flags.FlagError(f'invalid argument "{output}" for "--output" flag: must be text or json')
    access: dict[str, str] = {name: values[name][-1] for name in ACCESS if name in values}
    if "server" not in access and ("token" in access or "certificate-authority" in access):
        raise flags.FlagError("--token and --certificate-authority need --server")
    return _run(Path(sources[0]), access, flags.is_on(values, "impersonate"), output)


def _run(path: Path, access: dict[str, str], impersonate: bool, output: str) -> int:
    # Saves start-up time: wrong flags and `--help` need no server.
    from kubist.testbench.replay.source import MalformedRecording, check_lines

    try:
        with path.open("rb") as lines:
            check_lines(lines, str(path))
    except MalformedRecording as error:
        print(error, file=sys.stderr)
        return fail(f"{len(error.problems)} lines of {path} are malformed; nothing was sent", USAGE)
    try:
        report = _replay(path, access, impersonate)
    except ValueError as error:
        return fail(str(error), USAGE)
    print(json.dumps(report.state(), indent=2) if output == "json" else _text(path, report))
    return OK if report.same else FAILED


def _replay(path: Path, access: dict[str, str], impersonate: bool) -> Report:
    # Saves start-up time: wrong flags and `--help` need no server.
    from kubist.testbench.replay.replay import replay_lines
    from kubist.testing.cluster import Cluster

    if not access:
        with Cluster() as cluster:
            return cluster.replay(path, impersonate=impersonate)
    client = _client(access)
    try:
        with path.open("rb") as lines:
            return replay_lines(client, lines, impersonate=impersonate)
    finally:
        client.close()


def _client(access: dict[str, str]) -> ReplayClient:
    # Saves start-up time: a new server needs no kubeconfig.
    from kubist.testbench.replay.client import ReplayClient, read_kubeconfig, tls_context

    if "kubeconfig" in access:
        kubeconfig = read_kubeconfig(Path(access["kubeconfig"]))
        return ReplayClient(access.get("server") or kubeconfig.server, kubeconfig.context, kubeconfig.token)
    context = tls_context(access.get("certificate-authority"))
    return ReplayClient(access["server"], context, access.get("token", ""))


def _text(path: Path, report: Report) -> str:
    lines = [f"{report.sent} requests sent, {report.differing} differ, {report.skipped} skipped"]
    for difference in report.differences:
        why = f": {difference.message}" if difference.message else ""
        result = f"recorded {difference.recorded}, now {difference.status}{why}"
        lines.append(f"{path}:{difference.line}: {difference.request}: {result}")
    reasons = sorted(report.reasons().items(), key=lambda item: -item[1])
    lines += [f"skipped {count}: {reason}" for reason, count in reasons[:MOST_SKIPS]]
    return "\n".join(lines)
