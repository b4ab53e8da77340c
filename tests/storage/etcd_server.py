"""Real etcd for tests, on free ports, stopped by its process id."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from tests import programs


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class EtcdServer:
    """One etcd member. It keeps its data and its ports across a restart."""

    def __init__(self, directory: Path, *options: str, name: str = "a", scheme: str = "http") -> None:
        self.endpoint = f"{scheme}://127.0.0.1:{free_port()}"
        self._peer = f"http://127.0.0.1:{free_port()}"
        self.member = f"{name}={self._peer}"
        self.cluster = self.member
        self._name = name
        self._directory = directory
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts the process. Skips the test without etcd."""
        command = [programs.path_of("etcd"), "--name", self._name]
        command += ["--data-dir", str(self._directory / f"{self._name}.data")]
        command += ["--listen-client-urls", self.endpoint, "--advertise-client-urls", self.endpoint]
        command += ["--listen-peer-urls", self._peer, "--initial-advertise-peer-urls", self._peer]
        command += ["--initial-cluster", self.cluster, "--log-level", "warn"]
        # If etcd 3.5.0 to 3.5.2 is killed, it can lose acknowledged writes that it has not committed to its database.
        # With this limit it commits every write before it answers.
        command += ["--backend-batch-limit", "1"]
        # Tests kill processes, not the machine, so nothing needs the disk: on a busy one, writes of etcd time out.
        command += ["--unsafe-no-fsync", *self._options]
        with (self._directory / f"{self._name}.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)

    def wait(self, seconds: float = 20) -> None:
        """Waits until the member accepts connections."""
        deadline = time.monotonic() + seconds
        host, _, port = self.endpoint.partition("://")[2].partition(":")
        while True:
            try:
                socket.create_connection((host, int(port)), timeout=1).close()
                return
            except OSError:
                assert time.monotonic() < deadline, (self._directory / f"{self._name}.log").read_text()
                time.sleep(0.02)

    def pause(self) -> None:
        """Pauses the process: it does not respond and keeps its connections."""
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextlib.contextmanager
def running_etcd(directory: Path) -> Iterator[EtcdServer]:
    """An etcd with one member. Skips the test without etcd."""
    server = EtcdServer(directory)
    server.start()
    server.wait()
    try:
        yield server
    finally:
        server.stop()
