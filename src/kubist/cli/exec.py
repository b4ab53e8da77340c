"""`kubist exec`: runs a command with a temporary server and its KUBECONFIG."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from kubist import logs
from kubist.cli import flags, help, serveflags
from kubist.cli.exits import fail

if TYPE_CHECKING:
    from kubist.testing.cluster import Cluster

_LEFT_OUT = ("data-dir", "detach", "in-memory", "kubeconfig", "kubeconfig-merge", "workers")
LOAD = flags.Flag(
    "load", "strings", "", "Manifests to apply first: files or directories. May be repeated.", "Data"
)
FLAGS = (LOAD, *(flag for flag in serveflags.FLAGS if flag.name not in _LEFT_OUT))
TITLE = """\
Starts an empty server in memory, runs a command with KUBECONFIG set, and stops the server. The exit code is
that of the command.

Usage:
  kubist exec [flags] -- COMMAND [ARGUMENT ...]

Example:
  kubist exec --workloads -- kubectl get nodes"""
NOT_FOUND, NOT_EXECUTABLE = 127, 126
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main(arguments: list[str]) -> int:
    at = arguments.index("--") if "--" in arguments else len(arguments)
    given, command = arguments[:at], arguments[at + 1 :]
    known = {flag.name: flag for flag in FLAGS}
    values = flags.parse(given, known)
    if "help" in values:
        return help.show(TITLE, FLAGS)
    if not command:
        raise flags.FlagError("no command: the usage is kubist exec [flags] -- COMMAND [ARGUMENT ...]")
    flags.check_combinations(values)
    # Saves start-up time: wrong flags and `--help` need no server.
    from kubist.inprocess import DEFAULTS
    from kubist.testing.cluster import Cluster, Refused

    manifests = [part for text in values.pop("load", []) for part in text.split(",") if part]
    config = flags.config(values, known, DEFAULTS)
    logs.setup(config.verbosity, config.logging_format)
    try:
        with Cluster(config) as cluster:
            cluster.load(*map(Path, manifests))
            return _run(command, cluster)
    except (Refused, ValueError) as error:
        return fail(str(error))


def _run(command: list[str], cluster: Cluster) -> int:
    """Exit code of the command; 128 plus the number of the signal that ended it."""
    variables = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "KUBIST_URL": cluster.url}
    children: list[subprocess.Popen[bytes]] = []
    early: list[int] = []
    """Signals that came before the command ran."""

    def pass_on(number: int, _: FrameType | None) -> None:
        if number == signal.SIGINT:
            return  # the terminal tells the command itself
        if children:
            children[0].send_signal(number)
        else:
            early.append(number)

    # Functions, not SIG_IGN: the command would inherit that. They are set before the command can ask for a signal.
    before = {number: signal.signal(number, pass_on) for number in SIGNALS}
    try:
        children.append(subprocess.Popen(command, env=variables))
        for number in early:
            children[0].send_signal(number)
        code = children[0].wait()
    except OSError as error:
        print(f"kubist exec: {command[0]}: {error.strerror}", file=sys.stderr)
        return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return code if code >= 0 else 128 - code
