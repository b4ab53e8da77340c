"""`kubist serve`: a small control plane on an embedded store, with nothing to configure.

The data directory gets certificates, the administrator's credentials, a signing key and a kubeconfig on first
start.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from kubist.api import logs
from kubist.api.config import SERVE_DEFAULTS, Config
from kubist.base import files
from kubist.base.version import __version__
from kubist.cli import flags, help
from kubist.cli.data_dir import default_data_dir
from kubist.cli.exits import IN_USE, fail, name_flag
from kubist.cli.serve_flags import FLAGS as FLAGS
from kubist.cli.serve_flags import SWITCHES
from kubist.errors import StartError

if TYPE_CHECKING:
    from kubist.cli.banner import Served
    from kubist.cli.instance import Instance
    from kubist.errors import StartError
    from kubist.server.server import Server

TITLE = """\
A small Kubernetes control plane on this machine.

Usage:
  kubist serve [flags]
  kubist serve --in-memory --workloads
  kubist serve --detach"""


def main(arguments: list[str]) -> int:
    known = {flag.name: flag for flag in FLAGS}
    values = flags.parse(arguments, known)
    if "help" in values:
        return help.show(TITLE, FLAGS)
    flags.check_combinations(values)
    in_memory, detached, merge = (
        flags.is_on(values, name) for name in ("in-memory", "detach", "kubeconfig-merge")
    )
    if "snapshot" in values and not in_memory:
        raise flags.FlagError(
            "--snapshot needs --in-memory: `kubist restore` puts a backup into a data directory instead"
        )
    settings = {name: texts for name, texts in values.items() if known[name] not in SWITCHES}
    config = flags.config(settings, known, SERVE_DEFAULTS)
    if "*" in config.controllers:
        config = replace(config, controllers=(*config.controllers, "guidance"))
    directory = _directory(config, in_memory=in_memory)
    target = values.get("kubeconfig", [""])[-1]
    service = Service(
        arguments,
        config,
        directory,
        Path(target) if target else directory / "kubeconfig",
        merge,
        in_memory,
        detached,
    )
    if detached:
        # Saves start-up time: only --detach needs it.
        from kubist.cli.detach import detach

        return detach(service)
    return service.run()


def _directory(config: Config, *, in_memory: bool) -> Path:
    """Directory of the keys, the kubeconfig and the store. A server in memory has a temporary one."""
    if in_memory:
        return Path(tempfile.mkdtemp(prefix="kubist-"))
    directory = Path(config.data_dir) if config.data_dir else default_data_dir()
    files.make_directory(directory)
    return directory


@dataclass(slots=True)
class Service:
    """One server of `kubist serve`."""

    arguments: list[str]
    config: Config
    directory: Path
    kubeconfig: Path
    merge: bool
    in_memory: bool
    detached: bool
    _registration: Instance | None = None

    def run(self, ready: Callable[[Served], None] | None = None) -> int:
        """Serves until a signal stops it. Returns the exit code. `ready` is called before the banner is printed."""
        try:
            if self.in_memory:
                self._clean_on_signals()
            # Saves start-up time: a server that runs already needs no event loop.
            from kubist.cli.instance import registered

            logs.setup(self.config.verbosity, self.config.logging_format)
            with registered(self.directory, exclusive=not self.config.etcd_servers) as registration:
                self._registration = registration
                return self._serve(ready)
        except BlockingIOError:
            return self.fail_in_use()
        finally:
            self.clean()

    def clean(self) -> None:
        """Removes the directory of a server in memory."""
        if self.in_memory:
            shutil.rmtree(self.directory, ignore_errors=True)

    def _clean_on_signals(self) -> None:
        """Removes the directory even if a signal ends this process before the server handles signals."""

        def end(number: int, _: FrameType | None) -> None:
            self.clean()
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, end)

    def fail_in_use(self) -> int:
        # Saves start-up time: only errors need it.
        from kubist.cli.banner import program
        from kubist.cli.instance import holder, read_record

        pid = holder(self.directory) or 0
        record = read_record(self.directory, pid)
        which = f"{record.url}, " if record else ""
        return fail(
            f"{self.directory} is in use by another process: a server runs there ({which}process {pid}). "
            f"`{program()} stop{self.selection()}` stops it, or choose another --data-dir",
            IN_USE,
        )

    def _serve(self, ready: Callable[[Served], None] | None) -> int:
        # Saves start-up time: wrong flags and `--help` need no server.
        from kubist.cli.banner import banner
        from kubist.cli.progress import sampled
        from kubist.server.runtime.pki import prepare
        from kubist.server.runtime.run import attempt, start_error

        try:
            config = prepare(self.config, self.directory, in_memory=self.in_memory)
        except (StartError, OSError, ValueError) as error:
            failure = start_error(error)
            return self._fail(failure)
        made: list[Server] = []

        def make() -> Server:
            made.append(_server(config))
            return made[0]

        def loaded() -> tuple[int, int, str]:
            return (made[0].registry.cache.loaded if made else 0), 0, "objects"

        def announce(port: int) -> None:
            end_progress()
            served = self._announce(config, port)
            if ready is not None:
                ready(served)
            print(banner(served), flush=True)

        if config.workers > 1:
            # Saves start-up time: only --workers needs it.
            from kubist.server.workers.supervisor import supervise

            end_progress = _nothing
            return supervise(config, announce)
        with sampled("Loading", loaded) as end_progress:
            problem = attempt(make, announce)
        return self._fail(problem) if problem else 0

    def _fail(self, error: StartError) -> int:
        return fail(name_flag(str(error), self.arguments), error.exit_code)

    def _announce(self, config: Config, port: int) -> Served:
        """Writes the kubeconfig and the record of the server."""
        # Saves start-up time: wrong flags and `--help` need no server.
        from kubist.base.listening import reachable
        from kubist.cli.banner import Served
        from kubist.cli.instance import Record, now
        from kubist.server.runtime import kubeconfig
        from kubist.server.runtime.pki import credential

        url = f"https://{reachable(config.bind_address)}:{port}"
        credentials = credential(self.directory, url)
        kubeconfig.write(self.kubeconfig, credentials)
        merged = str(kubeconfig.merge(credentials)) if self.merge else ""
        path = str(self.kubeconfig.absolute())
        if self._registration is not None:
            record = Record(
                os.getpid(),
                url,
                now(),
                __version__,
                path,
                self.in_memory,
                self.detached,
                config.etcd_servers,
            )
            self._registration.announce(record)
        return Served(
            url,
            str(self.directory.absolute()),
            path,
            self.in_memory,
            config.etcd_servers,
            config.workloads,
            self.detached,
            self.selection(),
            merged,
        )

    def selection(self) -> str:
        """Flags by which `kubist status` and similar commands find this server; empty for the default directory."""
        if not self.in_memory and not self.config.data_dir:
            return ""
        return f" --data-dir {shlex.quote(str(self.directory.absolute()))}"


def _nothing() -> None:
    """Does nothing, because there is no progress to end."""


def _server(config: Config) -> Server:
    if config.clusters:
        # Saves start-up time: few servers have clusters.
        from kubist.server.clusters.hosting import HostServer

        return HostServer(config)
    # Saves start-up time: wrong flags and `--help` need no server.
    from kubist.server.server import Server

    return Server(config)
