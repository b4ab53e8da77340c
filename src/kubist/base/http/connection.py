"""Base class of HTTP/1.1 and HTTP/2 connections, and the state that the connections of one server share."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl

from kubist.base.caching import bounded_cache
from kubist.base.http.http1.response_head import date_line
from kubist.base.http.limits import Limits
from kubist.base.http.messages import Application, Request, Response, Stream
from kubist.base.http.tls.contexts import peer_certificates

log = logging.getLogger("kubist.http")

NEVER = float("inf")
_KEEPALIVE_SECONDS = 180
_FAREWELL_SECONDS = 0.5
"""Seconds that a client has to read the last response before its connection is cut."""
_DRAIN_SECONDS = 0.02


class Host:
    """State of one server that its connections share."""

    __slots__ = (
        "application",
        "connections",
        "date",
        "limits",
        "loop",
        "now",
        "orphans",
        "quiet",
        "stopping",
    )

    def __init__(self, application: Application, limits: Limits, loop: asyncio.AbstractEventLoop) -> None:
        self.application = application
        self.limits = limits
        self.loop = loop
        self.now = loop.time()
        self.date = date_line()
        self.connections: set[Connection] = set()
        self.orphans: set[asyncio.Task[None]] = set()
        self.stopping = False
        self.quiet = asyncio.Event()

    def tick(self) -> None:
        """Updates the clock and closes connections past their deadline."""
        self.now = now = self.loop.time()
        self.date = date_line()
        for connection in [c for c in self.connections if now > c.deadline or now > c.stall_deadline]:
            connection.expire()

    def adopt(self, task: asyncio.Task[None]) -> None:
        """Keeps a task that outlives its connection, because the server still finishes a disconnected client's
        request."""
        if not task.done():
            self.orphans.add(task)
            task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self.orphans.discard(task)
        self.left()

    def left(self) -> None:
        """Sets `quiet` if the server is stopping and the last connection or orphaned task has ended."""
        if self.stopping and not self.connections and not self.orphans:
            self.quiet.set()

    def failure(self, request: Request) -> Response:
        """Response 500 for an exception in the application. Must be called while the exception is handled."""
        log.exception("the application failed on %s %s", request.method, request.path)
        return Response(500, [])


class _Gone(asyncio.Transport):
    """Replacement for the transport of a lost connection."""

    def is_closing(self) -> bool:
        return True

    def close(self) -> None: ...

    def abort(self) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def write(self, data: bytes | bytearray | memoryview) -> None: ...

    def get_write_buffer_size(self) -> int:
        return 0


_GONE = _Gone()


class Connection(asyncio.Protocol):
    """Connection of a client. `deadline`: loop time by which the client must have sent the data it owes."""

    __slots__ = (
        "deadline", "host", "lost", "peer", "peer_certificates", "scratch", "stall_deadline", "tls", "transport",
        "writable",
    )  # fmt: skip

    transport: asyncio.Transport

    def __init__(self, host: Host) -> None:
        self.host = host
        self.deadline = NEVER
        self.stall_deadline = NEVER
        self.writable = True
        self.lost = False
        self.scratch: dict[str, object] = {}
        self.peer_certificates: tuple[bytes, ...] = ()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport) or hasattr(transport, "write")
        self.transport = transport  # type: ignore[assignment]
        self.tls: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
        if self.tls is not None:
            self.peer_certificates = peer_certificates(self.tls)
        peer = transport.get_extra_info("peername")
        self.peer: tuple[str, int] = (peer[0], peer[1]) if isinstance(peer, tuple) else ("", 0)
        if isinstance(peer, tuple) and (raw := transport.get_extra_info("socket")) is not None:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if hasattr(socket, "TCP_KEEPIDLE"):
                raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEPALIVE_SECONDS)
        self.host.connections.add(self)
        self.deadline = self.host.now + self.host.limits.header_timeout
        if self.host.stopping:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        self.deadline = self.stall_deadline = NEVER
        for task in self.tasks():
            self.host.adopt(task)
        self.host.connections.discard(self)
        self.host.left()
        # The transport references this connection. Without this, each cycle would wait for the garbage
        # collector, which runs seldom: a flood of short connections would fill the memory first.
        self.transport = _GONE
        self.tls = None

    def pause_writing(self) -> None:
        self.writable = False
        self.stall_deadline = self.host.now + self.host.limits.stall_timeout

    def resume_writing(self) -> None:
        self.writable = True
        self.stall_deadline = NEVER

    def close(self, *, hurry: bool = False) -> None:
        """Closes the connection after everything is sent. With `hurry`, or when the server stops, does not wait
        for the client."""
        # Closing twice would make asyncio's TLS transport ignore `abort`.
        if not self.transport.is_closing():
            self.transport.close()
        if self.host.stopping:
            self._stop_reading()
        elif hurry:
            self.host.loop.call_later(_FAREWELL_SECONDS, self._hang_up)

    def _stop_reading(self) -> None:
        """Shuts down the read side after everything is sent, because TLS waits for the client to close."""
        if self.lost:
            return
        if self.transport.get_write_buffer_size():
            self.host.loop.call_later(_DRAIN_SECONDS, self._stop_reading)
        elif (raw := self.transport.get_extra_info("socket")) is not None:
            with contextlib.suppress(OSError), raw.dup() as same:
                same.shutdown(socket.SHUT_RD)

    def _hang_up(self) -> None:
        if not self.lost and not self.transport.get_write_buffer_size():
            self.transport.abort()

    def expire(self) -> None:
        """Handles a passed deadline."""
        self.transport.abort()

    def shutdown(self) -> None:
        """Finishes the current requests, accepts no new ones, and closes."""
        raise AssertionError("subclasses implement shutdown()")

    def tasks(self) -> list[asyncio.Task[None]]:
        """Tasks of the requests under way."""
        return []


@bounded_cache(entries=2048, key_length=64)
def header_name(raw: bytes) -> str:
    return raw.decode("latin-1").lower()


def stop(stream: Stream) -> None:
    try:
        stream.stopped()
    except Exception:
        log.exception("a stream failed to stop")
