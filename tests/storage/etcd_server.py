"""A real etcd for tests: the binary on PATH, on free ports, ended by its process id."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from pathlib import Path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class EtcdServer:
    """One member. Stopped and started again, it keeps its data and its port."""

    def __init__(self, directory: Path, *options: str, scheme: str = "http") -> None:
        self.endpoint = f"{scheme}://127.0.0.1:{free_port()}"
        self._log = directory / "etcd.log"
        peer = f"http://127.0.0.1:{free_port()}"
        self._command = ["etcd", "--data-dir", str(directory / "data"), "--log-level", "warn"]
        self._command += ["--listen-client-urls", self.endpoint, "--advertise-client-urls", self.endpoint]
        self._command += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]
        self._command += ["--initial-cluster", f"default={peer}", *options]
        self._process: subprocess.Popen[bytes] | None = None

    @staticmethod
    def missing() -> str | None:
        return None if shutil.which("etcd") else "there is no etcd on PATH"

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        deadline = time.monotonic() + 20
        host, _, port = self.endpoint.partition("://")[2].partition(":")
        while True:
            try:
                socket.create_connection((host, int(port)), timeout=1).close()
                return
            except OSError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"etcd did not start:\n{self._log.read_text()}") from None
                time.sleep(0.02)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
