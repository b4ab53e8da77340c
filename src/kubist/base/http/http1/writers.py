"""Writers of HTTP/1.1 streams, each on a connection of its own, and tunnels. WebSocket extends them.

All writes of one turn of the event loop are sent together: one chunk, one TLS record, one system call. A stream
that has just sent waits up to GATHER seconds, so a busy watch costs per piece, not per event.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kubist.base.http.connection import log, stop
from kubist.base.http.messages import Stream

if TYPE_CHECKING:
    from kubist.base.http.http1.connection import Http1

GATHER = 0.01
"""Seconds between two pieces of one stream. The first piece after a pause is sent at once."""


class RawWriter:
    """Raw bytes until the connection closes, for a stream to an HTTP/1.0 client."""

    __slots__ = (
        "_connection", "_head", "_loop", "_pending", "_scheduled", "_sent", "_size", "_stream", "closed",
        "on_room",
    )  # fmt: skip

    def __init__(self, connection: Http1, stream: Stream, head: bytes) -> None:
        self._connection = connection
        self._loop = connection.host.loop
        self._stream = stream
        self._pending: list[bytes] = []
        self._size = 0
        self._scheduled = False
        self._sent = 0.0
        self._head = head
        self.closed = False
        self.on_room: Callable[[], None] | None = None

    def start(self) -> None:
        self._scheduled = True
        self._loop.call_soon(self._due)
        try:
            self._stream.start(self)
        except Exception:
            log.exception("a stream failed to start")
            self.abort()

    @property
    def buffered(self) -> int:
        if self._connection.lost:
            return 0
        return self._size + self._connection.transport.get_write_buffer_size()

    def write(self, data: bytes) -> None:
        if self.closed or not data:
            return
        self._pending.append(data)
        self._size += len(data)
        if not self._scheduled:
            self._scheduled = True
            wait = self._sent + GATHER - self._loop.time()
            if wait > 0:
                self._loop.call_later(wait, self._due)
            else:
                self._loop.call_soon(self._due)

    def listen(self, willing: bool) -> None:
        """Resumes or pauses reading from the client. Only for connections that are no longer HTTP."""
        if not self._connection.lost:
            transport = self._connection.transport
            transport.resume_reading() if willing else transport.pause_reading()

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        self._loop.call_soon(stop, self._stream)
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._due)

    def abort(self) -> None:
        if not self._connection.lost:
            self._connection.transport.abort()
        self.gone()

    def gone(self) -> None:
        """Handles a disconnected client."""
        self._pending.clear()
        self._size = 0
        if not self.closed:
            self.closed = True
            self._loop.call_soon(stop, self._stream)

    def _due(self) -> None:
        if self._scheduled:
            self.flush()

    def flush(self) -> None:
        self._scheduled = False
        connection = self._connection
        if connection.lost or not connection.writable:
            return
        if self._pending:
            self._sent = self._loop.time()
            data = self._framed(self._pending)
            connection.transport.write(self._head + data if self._head else data)
            self._head = b""
            self._pending.clear()
            self._size = 0
        elif self._head:
            connection.transport.write(self._head)
            self._head = b""
        if self.closed:
            self._end()
        elif self.on_room is not None and connection.writable:
            self._loop.call_soon(self._more)

    def _more(self) -> None:
        on_room, self.on_room = self.on_room, None
        if on_room is not None and not self.closed:
            on_room()
            self.flush()

    def _framed(self, pending: list[bytes]) -> bytes:
        return b"".join(pending)

    def _end(self) -> None:
        self._connection.answered(keep_alive=False)


class ChunkedWriter(RawWriter):
    """Chunked transfer encoding. The connection can be reused afterwards."""

    __slots__ = ()

    def _framed(self, pending: list[bytes]) -> bytes:
        if len(pending) == 1:
            return b"%x\r\n%b\r\n" % (self._size, pending[0])
        return b"%x\r\n%b\r\n" % (self._size, b"".join(pending))

    def _end(self) -> None:
        self._connection.transport.write(b"0\r\n\r\n")
        self._connection.answered(keep_alive=True)


class Tunnel(RawWriter):
    """Client side of a tunnel: after the head of the response, bytes pass unchanged in both directions.

    Writes are sent at once, without gathering.
    """

    __slots__ = ()

    def write(self, data: bytes) -> None:
        super().write(data)
        self.flush()

    def receive(self, data: bytes) -> None:
        if self._stream.received is not None and not self.closed:
            self._stream.received(data)
