"""A server of several processes from outside: its processes, and connections to each worker."""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cli.processes import Running, running

READY = r"on https://127\.0\.0\.1:(\d+)"
MERGE = "application/merge-patch+json"
PATIENCE = 60.0


class Crew:
    """`kubist serve --workers N` in `home`."""

    def __init__(self, home: Path, process: Running) -> None:
        self.process = process
        self.port = int(process.wait_for(READY, PATIENCE))
        self.tls = ssl.create_default_context(cafile=str(home / "data/pki/ca.crt"))
        self.tls.load_cert_chain(home / "data/pki/admin.crt", home / "data/pki/admin.key")
        self._connections: list[Connection] = []

    @property
    def pids(self) -> list[int]:
        """Its children in start order; the store process is the first."""
        return children(self.process.process.pid)

    def connect(self) -> Connection:
        self._connections.append(connection := Connection(self))
        return connection

    def hang_up(self) -> None:
        while self._connections:
            self._connections.pop().close()

    def one_each(self, count: int) -> list[Connection]:
        """A connection to each worker."""
        found: dict[int, Connection] = {}
        deadline = time.monotonic() + PATIENCE
        while len(found) < count:
            assert time.monotonic() < deadline, "not every worker is reached"
            connection = self.connect()
            found.setdefault(connection.worker, connection)
        return list(found.values())


class Connection:
    """A kept-alive connection to one worker."""

    def __init__(self, crew: Crew) -> None:
        self._http = http.client.HTTPSConnection("127.0.0.1", crew.port, timeout=PATIENCE, context=crew.tls)
        self._http.connect()
        self._http.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._crew = crew

    @property
    def worker(self) -> int:
        """Process that serves this connection."""
        assert self.ask("GET", "/version")[0] == 200
        return server_of(self._http.sock.getsockname()[1], self._crew.port, self._crew.pids)

    def send(
        self, method: str, path: str, body: Any = None, kind: str = "application/json", **headers: str
    ) -> http.client.HTTPResponse:
        raw = None if body is None else json.dumps(body)
        self._http.request(method, path, raw, {"Content-Type": kind, **headers})
        return self._http.getresponse()

    def ask(
        self, method: str, path: str, body: Any = None, kind: str = "application/json"
    ) -> tuple[int, Any]:
        answer = self.send(method, path, body, kind)
        raw = answer.read()
        return answer.status, json.loads(raw) if raw.startswith(b"{") else raw.decode()

    def get(self, path: str) -> Any:
        code, answer = self.ask("GET", path)
        assert code == 200, answer
        return answer

    def post(self, path: str, body: Any) -> Any:
        code, answer = self.ask("POST", path, body)
        assert code == 201, answer
        return answer

    def close(self) -> None:
        self._http.close()


@contextmanager
def crew(home: Path, workers: int, *flags: str) -> Iterator[Crew]:
    home.mkdir(exist_ok=True)
    where = ("--data-dir=data", "--secure-port=0", f"--workers={workers}")
    with running(home, "serve", *where, *flags) as process:
        found = Crew(home, process)
        try:
            yield found
        finally:
            found.hang_up()
            process.stop()


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def alive(pids: list[int]) -> list[int]:
    """The processes that have not ended."""
    return [pid for pid in pids if _state(pid) not in ("Z", "")]


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def server_of(client: int, port: int, pids: list[int]) -> int:
    """Process that serves the connection between two local ports."""
    ends = f":{port:04X}", f":{client:04X}"
    rows = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    inode = next(row[9] for row in rows if row[1].endswith(ends[0]) and row[2].endswith(ends[1]))
    for pid in pids:
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            try:
                if os.readlink(descriptor) == f"socket:[{inode}]":
                    return pid
            except FileNotFoundError:
                continue
    raise AssertionError("nobody serves the connection")
