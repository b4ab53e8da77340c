"""`kubist exec`: runs a command with a temporary server and its KUBECONFIG."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Self

from kubist.api import logs
from kubist.cli import flags, help, serve_flags
from kubist.cli.exits import fail
from kubist.errors import StartError

if TYPE_CHECKING:
    from kubist.testing.cluster import Cluster

_LEFT_OUT = ("data-dir", "detach", "in-memory", "kubeconfig", "kubeconfig-merge", "workers")
LOAD = flags.Flag(
    "load", "strings", "", "Manifests to apply first: files or directories. May be repeated.", "Data"
)
_CHANGED = {
    "secure-port": {"default": "0"},
    "snapshot": {"help": "Start from this backup or snapshot file, which stays as it is."},
}
"""Differences from the flags of `kubist serve`."""
FLAGS = (
    LOAD,
    *(
        flag._replace(**_CHANGED.get(flag.name, {}))
        for flag in serve_flags.FLAGS
        if flag.name not in _LEFT_OUT
    ),
)
TITLE = """\
Starts an empty server in memory, runs a command with KUBECONFIG set, and stops the server. The exit code is
that of the command. KUBIST_URL, KUBIST_TOKEN and KUBIST_CA (a file) are set for clients without a kubeconfig.

Usage:
  kubist exec [flags] -- COMMAND [ARGUMENT ...]

Example:
  kubist exec --workloads -- kubectl get nodes"""
NOT_FOUND, NOT_EXECUTABLE = 127, 126
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main(arguments: list[str]) -> int:
    at = arguments.index("--") if "--" in arguments else len(arguments)
    if at == len(arguments) and arguments and not arguments[0].startswith("-"):
        raise flags.FlagError(f"put -- before the command: kubist exec -- {shlex.join(arguments)}")
    options, command = arguments[:at], arguments[at + 1 :]
    known = {flag.name: flag for flag in FLAGS}
    if options and not options[0].startswith("-"):
        raise flags.FlagError(f"put -- before the command: kubist exec -- {' '.join(options)}")
    values = flags.parse(options, known)
    if "help" in values:
        return help.show(TITLE, FLAGS)
    if not command:
        raise flags.FlagError("no command: the usage is kubist exec [flags] -- COMMAND [ARGUMENT ...]")
    flags.check_combinations(values)
    # Saves start-up time: wrong flags and `--help` need no server.
    from kubist.server.inprocess import DEFAULTS
    from kubist.testing.cluster import Cluster, Refused

    manifests = [part for text in values.pop("load", []) for part in text.split(",") if part]
    for path in manifests:
        if not Path(path).exists():
            raise flags.FlagError(f"--load: {path} does not exist: name a file or a directory with manifests")
    config = flags.config(values, known, DEFAULTS)
    logs.setup(config.verbosity, config.logging_format)
    try:
        with _Signals() as signals, Cluster(config) as cluster:
            cluster.load(*map(Path, manifests))
            return _run(command, cluster, signals)
    except StartError as error:
        return fail(str(error), error.exit_code)
    except (Refused, ValueError, LookupError) as error:
        return fail(str(error))


class _Signals:
    """Passes signals on to the command. A signal that arrives while the server starts keeps the command from running,
    and the server stops gracefully."""

    def __init__(self) -> None:
        self.early = 0
        """Number of a signal that came before the command ran."""
        self._child: subprocess.Popen[bytes] | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        # Functions, not SIG_IGN: the command would inherit that.
        self._before = {number: signal.signal(number, self._pass_on) for number in SIGNALS}
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _pass_on(self, number: int, _: FrameType | None) -> None:
        if self._child is None:
            self.early = number
        elif number != signal.SIGINT:  # the terminal sends it to the command itself
            self._child.send_signal(number)

    def start(self, command: list[str], variables: dict[str, str]) -> subprocess.Popen[bytes]:
        """Starts the command. A signal that arrives at this moment is passed on."""
        self._child = subprocess.Popen(command, env=variables)
        if self.early:
            self._child.send_signal(self.early)
        return self._child


def _run(command: list[str], cluster: Cluster, signals: _Signals) -> int:
    """Exit code of the command; 128 plus the number of the signal that ended it."""
    variables = {
        **os.environ,
        "KUBECONFIG": str(cluster.kubeconfig),
        "KUBIST_URL": cluster.url,
        "KUBIST_TOKEN": cluster.token,
        "KUBIST_CA": str(cluster.ca),
    }
    if signals.early:
        return 128 + signals.early
    try:
        code = signals.start(command, variables).wait()
    except OSError as error:
        exists = not isinstance(error, FileNotFoundError)
        return fail(
            f"{command[0]} cannot be run: {_reason(error, command[0])}: check the command after --",
            NOT_EXECUTABLE if exists else NOT_FOUND,
        )
    return code if code >= 0 else 128 - code


def _reason(error: OSError, program: str) -> str:
    if isinstance(error, FileNotFoundError) and "/" not in program:
        return "there is no such command in PATH"
    return error.strerror or str(error)
