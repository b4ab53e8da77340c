"""`kubist serve` as a process of its own, with TLS and a kubeconfig."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path

from tests.cli.processes import Running
from tests.ecosystem.installation import run

READY = r"serves Kubernetes v1\.36 on https://\S+:(\d+)"


class Server:
    """Server on a data directory. It keeps its port over restarts."""

    def __init__(self, home: Path, *flags: str) -> None:
        self.home = home
        self.kubeconfig = home / "data/kubeconfig"
        self._flags = flags
        self._port = "0"

    def start(self) -> None:
        flags = ("--data-dir", str(self.home / "data"), "--secure-port", self._port, *self._flags)
        self._process = Running(self.home, "serve", *flags)
        self._port = self._process.wait_for(READY, 60)

    def stop(self) -> None:
        self._process.stop(signal.SIGTERM)
        self._process.close()

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables for a client of this server. Proxies are not for loopback addresses."""
        return {"KUBECONFIG": str(self.kubeconfig), "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}

    def run(self, *command: str | Path, seconds: float = 120) -> str:
        """Runs a client program against this server."""
        return run(list(command), self.home, seconds, self.environment)


def unique(name: str) -> str:
    """Name that no other test uses."""
    return f"{name}-{os.urandom(3).hex()}"
