"""`kubist apiserver`: the API server alone, as a replacement of kube-apiserver with the same flags."""

from __future__ import annotations

import sys

from kubist.base.terminal import has_colours
from kubist.cli.exits import USAGE, fail, name_flag
from kubist.cli.flag_list import Flag, FlagError, of_kube_apiserver, parse, usage

TYPE_CHECKING = False  # Saves start-up time: `--help` does without `typing`.
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from kubist.api.config import Config

    Adapt = Callable[[Config], tuple[Config, socket.socket | None]]

TITLE = """\
The Kubernetes API server in Python: takes the flags of kube-apiserver. Data goes to the etcd of
--etcd-servers, or to an embedded store in --data-dir. Without both it is only in memory.

Usage:
  kubist apiserver [flags]"""


def main(arguments: list[str], adapt: Adapt | None = None) -> int:
    """Runs a server with the given flags. `adapt` changes their Config, and may return a listening socket; its
    ValueError and OSError are reported."""
    known = of_kube_apiserver()
    try:
        values = parse(arguments, known)
    except FlagError as error:
        return fail(str(error), USAGE)
    if "help" in values:
        print(_help(usage(TITLE, known.values())), end="")
        return 0
    return _serve(values, known, adapt)


def _help(text: str) -> str:
    if not has_colours(sys.stdout):
        return text
    # Saves start-up time: test libraries read the help from a pipe.
    from kubist.cli.help import coloured

    return coloured(text)


def _fail_to_bind(error: Exception, config: Config) -> int:
    # Saves start-up time: `--help` does without an event loop.
    from kubist.server.runtime.run import start_error

    problem = start_error(error, config.bind_address, config.secure_port)
    return fail(str(problem), problem.exit_code)


def _serve(values: dict[str, list[str]], known: dict[str, Flag], adapt: Adapt | None) -> int:
    # Saves start-up time: `--help` needs none of them.
    from kubist.api import logs
    from kubist.api.config import KUBERNETES_VERSION, Config
    from kubist.cli import flags

    try:
        if flags.asks_for_version(values):
            print(f"Kubernetes {KUBERNETES_VERSION}")
            return 0
        verbosity = int(values.get("v", ["0"])[-1]) if values.get("v", ["0"])[-1].isdigit() else 0
        form = [*values.get("logging-format", []), *values.get("log-format", [])] or ["text"]
        logs.setup(verbosity or 1, form[-1])
        flags.check_combinations(values)
        config = flags.config(values, known, Config(cert_dir="/var/run/kubernetes"))
    except (FlagError, ValueError) as error:
        return fail(str(error), USAGE)
    sock = None
    if adapt is not None:
        try:
            config, sock = adapt(config)
        except (OSError, ValueError) as error:
            return _fail_to_bind(error, config)

    # Saves start-up time: wrong flags need no server.
    from kubist.server.runtime.run import attempt
    from kubist.server.server import Server

    def announce(port: int) -> None:
        logs.server.info("serving on %s:%d", config.bind_address, port)

    if config.workers > 1:
        # Saves start-up time: only --workers needs it.
        from kubist.server.workers.supervisor import supervise

        return supervise(config, announce)
    problem = attempt(lambda: Server(config), announce, sock)
    if problem is None:
        return 0
    arguments = [f"--{name}={value}" for name, rows in values.items() for value in rows]
    return fail(name_flag(str(problem), arguments), problem.exit_code)
