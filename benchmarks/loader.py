"""Minimal HTTP/1.1 client on raw TLS connections. It uses little CPU, so that benchmarks measure the server.

It reads responses with a Content-Length, and counts the events of watches.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

_EVENT = b'"type":"'


def tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def request(method: str, path: str, token: str, body: bytes = b"", **headers: str) -> bytes:
    """A request as bytes; header names are given with underscores."""
    lines = [f"{method} {path} HTTP/1.1", "Host: bench", f"Authorization: Bearer {token}", "User-Agent: load"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    if body or method != "GET":
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join((*lines, "", "")).encode() + body


class Connection(asyncio.Protocol):
    """Connection with one request at a time. `events` counts the events of a watch."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None
        self._chunks: list[bytes] = []
        self._left = -1
        self._status = 0
        self._streaming = False
        self._rest = b""
        self.events = 0
        self.bytes = 0
        self.on_events: Callable[[], None] = lambda: None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError("the server closed the connection"))

    def ask(self, sent: bytes) -> asyncio.Future[tuple[int, bytes]]:
        """Sends a request. Returns status and body of the response; for a stream, as soon as its head has arrived."""
        self._answer = asyncio.get_running_loop().create_future()
        self._chunks, self._left = [], -1
        self.transport.write(sent)
        return self._answer

    def data_received(self, data: bytes) -> None:
        self.bytes += len(data)
        if self._streaming:
            self._count(data)
            return
        if self._left < 0:
            if self._chunks:
                data = b"".join((*self._chunks, data))
                self._chunks = []
            end = data.find(b"\r\n\r\n")
            if end < 0:
                self._chunks = [data]
                return
            head, data = data[:end].lower(), data[end + 4 :]
            self._status = int(head[9:12])
            at = head.find(b"content-length:")
            if at < 0:
                self._streaming = True
                self._settle(b"")
                self._count(data)
                return
            self._left = int(head[at + 15 :].split(b"\r", 1)[0])
        self._chunks.append(data)
        self._left -= len(data)
        if self._left <= 0:
            self._settle(b"".join(self._chunks))

    def _settle(self, body: bytes) -> None:
        assert self._answer is not None
        answer, self._answer = self._answer, None
        self._chunks, self._left = [], -1
        answer.set_result((self._status, body))

    def _count(self, data: bytes) -> None:
        if self._rest:
            data = self._rest + data
        self.events += data.count(_EVENT)
        self._rest = data[-len(_EVENT) + 1 :]
        self.on_events()


async def connect(port: int, context: ssl.SSLContext) -> Connection:
    loop = asyncio.get_running_loop()
    _, protocol = await loop.create_connection(Connection, "127.0.0.1", port, ssl=context)
    return protocol


@dataclass
class Sample:
    """Result of a workload, as its client measured it."""

    operations: int = 0
    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    bytes: int = 0
    failures: list[str] = field(default_factory=list)

    def quantile(self, part: float) -> float:
        ordered = sorted(self.latencies)
        return ordered[int((len(ordered) - 1) * part)] if ordered else 0.0


Do = Callable[[Connection, int], Awaitable[tuple[int, int]]]
"""Runs the i-th operation on a connection. Returns its status and the size of its responses in bytes."""


async def run(port: int, connections: int, total: int, expected: int, do: Do) -> Sample:
    """Runs `total` operations on this many connections, as fast as the server responds."""
    context = tls()
    clients = [await connect(port, context) for _ in range(connections)]
    sample, counter = Sample(total), iter(range(total))

    async def work(client: Connection) -> None:
        for number in counter:
            begin = time.perf_counter()
            status, size = await do(client, number)
            sample.latencies.append(time.perf_counter() - begin)
            sample.bytes += size
            if status != expected:
                sample.failures.append(f"operation {number}: status {status}, not {expected}")

    begin = time.perf_counter()
    await asyncio.gather(*map(work, clients))
    sample.seconds = time.perf_counter() - begin
    for client in clients:
        client.transport.close()
    return sample
