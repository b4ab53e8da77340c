"""Outbox: sending half of an HTTP/2 connection. Sends frames in order, and bodies in turns within the client's
windows.

All frames of one turn of the event loop, of all streams, are one write.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from kubist.base.http.bodies import WINDOW
from kubist.base.http.http2.exchange import Exchange
from kubist.base.http.http2.frames import (
    DEFAULT_FRAME_SIZE,
    DEFAULT_WINDOW,
    Error,
    Flag,
    Kind,
    frame,
    frame_head,
    reset,
)
from kubist.base.http.http2.hpack import NO_TABLE, encode
from kubist.base.http.messages import Headers

if TYPE_CHECKING:
    from kubist.base.http.http2.connection import Http2

_QUANTUM = 64 * 1024


class _StatusFields(dict[int, bytes]):
    """Encoded field `:status` of each status that was used. KeyError for an invalid status."""

    def __missing__(self, status: int) -> bytes:
        if not 100 <= status <= 999:
            raise KeyError(status)
        field = self[status] = encode(b":status", b"%d" % status)
        return field


_STATUS = _StatusFields()


class Outbox:
    """Frame writer of a connection. `window`, `initial_window` and `frame_size` are the client's settings.
    Bodies take turns of `_QUANTUM` bytes."""

    __slots__ = (
        "_connection", "_date", "_date_field", "_frames", "_opening", "_ready", "_scheduled", "frame_size",
        "initial_window", "window",
    )  # fmt: skip

    def __init__(self, connection: Http2) -> None:
        self._connection = connection
        self.window = DEFAULT_WINDOW
        self.initial_window = DEFAULT_WINDOW
        self.frame_size = DEFAULT_FRAME_SIZE
        self._frames: list[bytes] = []
        self._ready: deque[Exchange] = deque()
        self._scheduled = False
        self._opening = NO_TABLE
        self._date = self._date_field = b""

    @property
    def empty(self) -> bool:
        return not self._frames and not self._ready

    def send(self, data: bytes) -> None:
        self._frames.append(data)
        self.schedule()

    def headers(self, stream: int, status: int, headers: Headers, length: int | None, *, end: bool) -> None:
        date = self._connection.host.date
        if date is not self._date:
            self._date, self._date_field = date, encode(b"date", date.split(b": ")[1].strip())
        fields = [encode(name, value) for name, value in headers]
        if length is not None:
            fields.append(encode(b"content-length", b"%d" % length))
        block = b"".join((self._opening, _STATUS[status], *fields, self._date_field))
        self._opening = b""
        self._block(stream, block, Flag.END_STREAM if end else 0)

    def refuse(self, stream: int, status: int, *, received: bool) -> None:
        """Sends a response without a body, and asks for no more of a request that was not received in full."""
        self.headers(stream, status, [], 0, end=True)
        if not received:
            self.send(reset(stream, Error.NO_ERROR))

    def continue_(self, stream: int) -> None:
        """Sends 100 Continue: the client may send its body."""
        self._block(stream, self._opening + _STATUS[100], 0)
        self._opening = b""

    def _block(self, stream: int, block: bytes, flags: int) -> None:
        if len(block) <= self.frame_size:
            self.send(frame(Kind.HEADERS, flags | Flag.END_HEADERS, stream, block))
            return
        pieces = [block[at : at + self.frame_size] for at in range(0, len(block), self.frame_size)]
        self.send(frame(Kind.HEADERS, flags, stream, pieces[0]))
        for piece in pieces[1:-1]:
            self.send(frame(Kind.CONTINUATION, 0, stream, piece))
        self.send(frame(Kind.CONTINUATION, Flag.END_HEADERS, stream, pieces[-1]))

    def queue(self, exchange: Exchange) -> None:
        """Queues an exchange that has bytes or its end to send."""
        if exchange.empty:
            if exchange.complete:
                self.send(frame_head(Kind.DATA, Flag.END_STREAM, exchange.id, 0))
                self._connection.answered(exchange)
        elif not exchange.queued:
            exchange.queued = True
            if exchange.window > 0:
                self._ready.append(exchange)
                self.schedule()
            else:
                self._connection.stall(exchange)

    def widen(self, exchange: Exchange, increment: int) -> None:
        """Adds to the window of one stream."""
        blocked = exchange.queued and exchange.window <= 0
        exchange.window += increment
        if blocked and exchange.window > 0:
            self._ready.append(exchange)
            self.schedule()

    def schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._connection.host.loop.call_soon(self._flush)

    def clear(self) -> None:
        self._frames.clear()
        self._ready.clear()

    def drain(self) -> bytes:
        """Pending frames, for a last write."""
        data = b"".join(self._frames)
        self.clear()
        return data

    def _flush(self) -> None:
        self._scheduled = False
        connection = self._connection
        if connection.lost or not connection.writable:
            return
        ready, budget = self._ready, WINDOW
        while ready and budget > 0 and self.window > 0:
            exchange = ready.popleft()
            if exchange.gone:
                continue
            before = self.window
            self._body(exchange, min(budget, _QUANTUM))
            budget -= before - self.window
        if self._frames:
            connection.transport.write(b"".join(self._frames))
            self._frames.clear()
        if ready:
            if self.window > 0:
                self.schedule()
            else:
                for exchange in ready:
                    connection.stall(exchange)
        elif connection.ending:
            connection.end()

    def _body(self, exchange: Exchange, quota: int) -> None:
        frames = self._frames
        while True:
            limit = min(quota, self.frame_size, self.window, exchange.window)
            if limit <= 0:
                break
            data = exchange.take(limit)
            length = len(data)
            quota -= length
            self.window -= length
            exchange.window -= length
            complete = exchange.complete
            frames.append(frame_head(Kind.DATA, Flag.END_STREAM if complete else 0, exchange.id, length))
            frames.append(data)
            if complete:
                self._connection.answered(exchange)
                return
            if exchange.empty:
                exchange.queued = False
                return
        if exchange.window > 0:
            self._ready.append(exchange)
        else:
            self._connection.stall(exchange)
