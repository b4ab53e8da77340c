"""Transport on real sockets for tests: the server in its own thread, the client in the thread of the test."""

from __future__ import annotations

import asyncio
import dataclasses
import http.client
import socket
import ssl
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import uvloop

from kubist.base.http import HttpServer, Limits, server_context
from kubist.base.http.messages import Answer, Request, Response, Stream, StreamWriter
from kubist.base.http.tls.certificates import Authority, Pair, new_authority, save

T = TypeVar("T")
JSON = [(b"Content-Type", b"application/json")]
PLAIN = [(b"Content-Type", b"text/plain")]
SMALL = Limits(body_bytes=100_000, header_bytes=16_384, header_count=50, linger_timeout=0.08)
"""Sizes that tests reach soon."""
SHORT = dataclasses.replace(SMALL, header_timeout=0.3, body_timeout=0.3, idle_timeout=0.4, stall_timeout=0.6)
"""Times that tests reach soon, and that a busy machine may reach by itself: for tests of timeouts only."""


@dataclass
class Pki:
    directory: Path
    authority: Authority
    server: Pair

    @classmethod
    def make(cls, directory: Path) -> Pki:
        authority = new_authority("test-ca")
        pki = cls(directory, authority, authority.issue_server(["localhost", "127.0.0.1", "::1"]))
        authority.save(pki.ca, directory / "ca.key")
        save(pki.server, pki.cert, pki.key)
        return pki

    @property
    def ca(self) -> Path:
        return self.directory / "ca.crt"

    @property
    def cert(self) -> Path:
        return self.directory / "tls.crt"

    @property
    def key(self) -> Path:
        return self.directory / "tls.key"

    def client(self, *, certificate: Pair | None = None, alpn: tuple[str, ...] = ()) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.ca))
        if alpn:
            context.set_alpn_protocols(list(alpn))
        if certificate is not None:
            cert, key = self.directory / "client.crt", self.directory / "client.key"
            save(certificate, cert, key)
            context.load_cert_chain(cert, key)
        return context


class Site:
    """Application under test: records its requests and serves a few paths with known responses."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.writers: list[StreamWriter] = []
        self.messages: list[bytes] = []
        self.stopped = 0
        self.stream_ready = threading.Event()
        self.stream_stopped = threading.Event()
        self.gate: asyncio.Event | None = None
        self.finished = 0

    async def __call__(self, request: Request) -> Answer:
        self.requests.append(request)
        if request.body_too_large:
            return Response(413, JSON, b'{"code":413}')
        handler = getattr(self, "do_" + request.path.strip("/").split("/")[0], None)
        answer: Answer = await handler(request) if handler else Response(404, JSON, b"{}")
        self.finished += 1
        return answer

    async def do_hello(self, request: Request) -> Answer:
        return Response(200, JSON, b'{"hello":"world"}')

    async def do_echo(self, request: Request) -> Answer:
        return Response(201, JSON, request.body)

    async def do_slow(self, request: Request) -> Answer:
        await asyncio.sleep(0.15)
        return Response(200, JSON, request.path.encode())

    async def do_gate(self, request: Request) -> Answer:
        """Response with the path, when the test opens the gate for all requests that wait at it."""
        self.gate = self.gate or asyncio.Event()
        await self.gate.wait()
        return Response(200, JSON, request.path.encode())

    async def do_large(self, request: Request) -> Answer:
        size = int(request.query)
        return Response(200, JSON, [bytes([65 + n % 26]) * 1000 for n in range(size // 1000)])

    async def do_solid(self, request: Request) -> Answer:
        return Response(200, JSON, b"s" * int(request.query))

    async def do_empty(self, request: Request) -> Answer:
        return Response(204, [])

    async def do_fail(self, request: Request) -> Answer:
        raise RuntimeError("broken")

    async def do_status(self, request: Request) -> Answer:
        """Response with the status in the query."""
        return Response(int(request.query), JSON, b"{}")

    async def do_status_stream(self, request: Request) -> Answer:
        return Stream(int(request.query), JSON, self._start, self._stop)

    async def do_unsendable(self, request: Request) -> Answer:
        return Response(200, [(b"X-Text", None)], b"{}")  # type: ignore[list-item]

    async def do_inject(self, request: Request) -> Answer:
        return Response(200, [(b"X-Text", b"a\r\nX-Evil: 1")], b"{}")

    async def do_watch(self, request: Request) -> Answer:
        return Stream(200, JSON, self._start, self._stop, "v2.test")

    async def do_bytes(self, request: Request) -> Answer:
        return Stream(200, PLAIN, self._start, self._stop, byte_stream=True)

    async def do_base64(self, request: Request) -> Answer:
        return Stream(200, PLAIN, self._start, self._stop, text_messages=True, byte_stream=True)

    async def do_binary(self, request: Request) -> Answer:
        return Stream(200, [(b"Content-Type", b"application/x")], self._start, self._stop)

    async def do_messages(self, request: Request) -> Answer:
        """WebSocket whose messages are recorded."""
        text = request.query == "text"
        return Stream(101, [], self._start, self._stop, message=self.messages.append, text_messages=text)

    def _start(self, writer: StreamWriter) -> None:
        self.writers.append(writer)
        self.stream_ready.set()

    def _stop(self) -> None:
        self.stopped += 1
        self.stream_stopped.set()


class Serving:
    """`HttpServer` in a background thread."""

    def __init__(
        self,
        application: Callable[[Request], Coroutine[Any, Any, Answer]],
        pki: Pki | None,
        *,
        limits: Limits | None = None,
        context: ssl.SSLContext | None = None,
        use_uvloop: bool = True,
    ) -> None:
        if context is None and pki is not None:
            context = server_context(pki.cert, pki.key, pki.ca)
        self.pki = pki
        self.server = HttpServer(application, ssl_context=context, limits=limits)
        self.loop: asyncio.AbstractEventLoop = (
            uvloop.new_event_loop() if use_uvloop else asyncio.new_event_loop()
        )
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.port = 0

    def __enter__(self) -> Serving:
        self.thread.start()
        self.port = self.run(self.server.start("127.0.0.1", 0))
        return self

    def __exit__(self, *_: object) -> None:
        self.run(self.server.stop(0.2))
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)

    def call(self, function: Callable[..., T], *arguments: object) -> T:
        """Runs a function on the thread of the loop and returns its result."""
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(function(*arguments))
            except BaseException as error:
                future.set_exception(error)

        self.loop.call_soon_threadsafe(run)
        return future.result(60)

    def http(self, context: ssl.SSLContext | None = None) -> http.client.HTTPConnection:
        if self.pki is None:
            return http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        return http.client.HTTPSConnection(
            "127.0.0.1", self.port, timeout=30, context=context or self.pki.client()
        )

    def socket(self, context: ssl.SSLContext | None = None) -> socket.socket:
        raw = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        if self.pki is None:
            return raw
        return (context or self.pki.client()).wrap_socket(raw, server_hostname="127.0.0.1")

    def exchange(self, data: bytes) -> bytes:
        """Sends `data` and reads until the server closes."""
        with self.socket() as client:
            client.sendall(data)
            return read_all(client)


def read_all(client: socket.socket) -> bytes:
    received = bytearray()
    try:
        while data := client.recv(65536):
            received += data
    except (ConnectionResetError, ssl.SSLEOFError):
        pass
    return bytes(received)


def read_until(client: socket.socket, end: bytes) -> bytes:
    received = bytearray()
    while end not in received[-70000:]:
        data = client.recv(65536)
        assert data, f"closed after {received!r}"
        received += data
    return bytes(received)
