"""Servers under test, each in its own process, with their CPU time and memory."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO

from loader import connect, request, tls
from workloads import TOKEN

_TICK = os.sysconf("SC_CLK_TCK")
_PATIENCE = 120.0
BARE = {
    "own": (str(Path(__file__).with_name("bare.py")), "--http1"),
    "uvicorn": (str(Path(__file__).with_name("bare_uvicorn.py")),),
}
"""Commands of the bare server, by transport."""


class Server:
    """Running server. `ready` is the time until its first response, in seconds."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, ready: float) -> None:
        self.process = process
        self.port = port
        self.ready = ready

    def _processes(self) -> list[Path]:
        """Process of the server, and those of its workers."""
        parent = Path(f"/proc/{self.process.pid}")
        children = (parent / f"task/{self.process.pid}/children").read_text().split()
        return [parent, *(Path(f"/proc/{child}") for child in children)]

    def cpu(self) -> float:
        """CPU time of all its threads and processes so far, in seconds."""
        ticks = 0
        for process in self._processes():
            fields = (process / "stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / _TICK

    def memory(self) -> float:
        """Resident memory in MB. Pages that processes share count once."""
        total, processes = 0, self._processes()
        wanted = "Rss:" if len(processes) == 1 else "Pss:"
        for process in processes:
            for line in (process / "smaps_rollup").read_text().splitlines():
                if line.startswith(wanted):
                    total += int(line.split()[1])
        return total / 1000

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def start_kubist(directory: Path, workers: int = 1) -> Server:
    """Starts `kubist apiserver` on SQLite in `directory`, with the certificates and store of an earlier start."""
    tokens = directory / "tokens"
    tokens.write_text(f'{TOKEN},bench,u-bench,"system:masters"\n')
    port = free_port()
    command = [
        *(sys.executable, "-m", "kubist", "apiserver", f"--secure-port={port}", "--bind-address=127.0.0.1"),
        *(f"--cert-dir={directory}", f"--data-dir={directory}", f"--token-auth-file={tokens}"),
        *("--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount", "--v=0"),
        f"--workers={workers}",
    ]
    return await _started(command, port, "/readyz")


async def start_bare(transport: str = "own") -> Server:
    port = free_port()
    return await _started([sys.executable, *BARE[transport], f"--port={port}"], port, "/")


async def _started(command: list[str], port: int, path: str) -> Server:
    begin = time.perf_counter()
    process, log = _spawn(command)
    context, asked = tls(), request("GET", path, TOKEN)
    while process.poll() is None and time.perf_counter() < begin + _PATIENCE:
        try:
            client = await connect(port, context)
            status, _ = await client.ask(asked)
            client.transport.close()
            if status == 200:
                return Server(process, port, time.perf_counter() - begin)
        except OSError:
            pass
        await asyncio.sleep(0.005)
    process.kill()
    log.seek(0)
    raise SystemExit(f"{' '.join(command)}: does not answer\n{log.read().decode()}")


def _spawn(command: list[str]) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
    """Process and its output. Python writes bytecode, as it does for users."""
    log = tempfile.TemporaryFile()  # noqa: SIM115, it lives as long as the process
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.Popen(command, stdout=log, stderr=log, env=environment), log
