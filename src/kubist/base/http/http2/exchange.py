"""Exchange: one HTTP/2 stream with its request and its response.

The connection owns the flow-control windows and the order of sending. The exchange knows its unsent data.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from kubist.base.http.bodies import Pieces, add, size, windows
from kubist.base.http.connection import log, stop
from kubist.base.http.http1.response_head import BODILESS
from kubist.base.http.http2.frames import Error
from kubist.base.http.messages import Answer, HangUp, Request, Stream

if TYPE_CHECKING:
    from kubist.base.http.http2.connection import Http2


class Exchange:
    """Request and response of a stream. For a `Stream` it is also the writer that the application gets.

    `reserved`: bytes of the connection's body budget that the body has reserved. `waits`: the body waits for
    the budget.
    """

    __slots__ = (
        "_chunk", "_connection", "_ended", "_offset", "_pending", "_pending_size", "_source", "_stream",
        "body", "body_size", "closed", "deadline", "expected", "gone", "head_size", "id", "on_room", "queued",
        "receive_window", "received", "request", "reserved", "stall_deadline", "task", "waits", "window",
    )  # fmt: skip

    def __init__(
        self,
        connection: Http2,
        number: int,
        request: Request,
        head_size: int,
        window: int,
        receive_window: int,
    ) -> None:
        self._connection = connection
        self.id = number
        self.request = request
        self.task: asyncio.Task[None] | None = None
        self.gone = False

        self.received = False
        self.head_size = head_size
        self.body: Pieces = []
        self.body_size = 0
        self.reserved = 0
        self.waits = False
        self.expected = -1
        self.receive_window = receive_window
        self.deadline = 0.0

        self.window = window
        self.queued = False
        self.stall_deadline = 0.0
        self._chunk = b""
        self._offset = 0
        self._source: Iterator[bytes] | None = None
        self._ended = False

        self.closed = False
        self._stream: Stream | None = None
        self._pending: list[bytes] = []
        self._pending_size = 0
        self.on_room: Callable[[], None] | None = None

    async def work(self) -> None:
        try:
            answer = await self._connection.host.application(self.request)
        except asyncio.CancelledError:
            self._connection.abandon(self)
            raise
        except HangUp as end:
            self.task = None
            self._end_early(end)
            return
        except Exception:
            answer = self._connection.host.failure(self.request)
        self.task = None
        if self.gone:
            self._connection.forget(self)
            if isinstance(answer, Stream):
                stop(answer)
            return
        try:
            self._reply(answer)
        except Exception:
            log.exception("sending the response to %s %s failed", self.request.method, self.request.path)
            self._connection.reset(self.id, Error.INTERNAL_ERROR)
            if isinstance(answer, Stream) and self._stream is None:
                stop(answer)

    def receive(self, content: bytes) -> None:
        """Adds a piece to the body."""
        self.body_size += len(content)
        add(self.body, content)

    def _reply(self, answer: Answer) -> None:
        connection, status = self._connection, answer.status
        bodiless = self.request.method == "HEAD" or status in BODILESS
        if isinstance(answer, Stream):
            connection.head(self, status, answer.headers, None, end=bodiless)
            if bodiless:
                stop(answer)
                return
            self._stream = answer
            if self.request.retires:
                connection.retire()
            if connection.host.stopping:
                connection.host.loop.call_soon(self.close)
            try:
                answer.start(self)
            except Exception:
                log.exception("a stream failed to start")
                self.abort()
            return
        body = answer.body
        length = len(body) if isinstance(body, bytes) else size(body)
        end = bodiless or not length
        declared = None if status in BODILESS else length
        connection.head(self, status, answer.headers, declared, end=end)
        if end:
            return
        self._ended = True
        if isinstance(body, bytes):
            self._chunk = body
        else:
            self._source = windows(b"", body)
            self._refill()
        connection.outbox.queue(self)

    def _end_early(self, end: HangUp) -> None:
        """Resets the stream, or ends it after the part of the response that the application chose."""
        connection, response = self._connection, end.response
        if self.gone:
            connection.forget(self)
        elif response is None or not end.sent:
            connection.reset(self.id, Error.INTERNAL_ERROR)
        else:
            whole = response.body if isinstance(response.body, bytes) else b"".join(response.body)
            connection.head(self, response.status, response.headers, len(whole), end=False)
            self._chunk, self._ended = whole[: end.sent], True
            connection.outbox.queue(self)

    # Unsent data

    @property
    def empty(self) -> bool:
        return self._offset >= len(self._chunk) and not self._pending

    @property
    def complete(self) -> bool:
        """Whether everything is sent and no more data will follow."""
        return self._ended and self._offset >= len(self._chunk) and not self._pending

    def take(self, limit: int) -> bytes:
        """Next bytes, at most `limit`."""
        if self._offset >= len(self._chunk):
            self._refill()
        chunk, offset = self._chunk, self._offset
        left = len(chunk) - offset
        if left > limit:
            self._offset = offset + limit
            return chunk[offset : offset + limit]
        self._refill()
        if self.on_room is not None and self.empty:
            self._connection.host.loop.call_soon(self._more)
        return chunk[offset:] if offset else chunk

    def _more(self) -> None:
        on_room, self.on_room = self.on_room, None
        if on_room is not None and not self.closed:
            on_room()

    def _refill(self) -> None:
        self._offset = 0
        if self._pending:
            self._chunk = self._pending[0] if len(self._pending) == 1 else b"".join(self._pending)
            self._pending.clear()
            self._pending_size = 0
        elif self._source is not None:
            self._chunk = next(self._source, b"")
        else:
            self._chunk = b""

    # Writer of a stream

    @property
    def buffered(self) -> int:
        return 0 if self.gone else self._pending_size + len(self._chunk) - self._offset

    def write(self, data: bytes) -> None:
        if self.closed or not data:
            return
        self._pending.append(data)
        self._pending_size += len(data)
        if not self.queued:
            self._connection.outbox.queue(self)

    def close(self) -> None:
        if self.closed:
            return
        self.closed = self._ended = True
        self._stopped()
        if not self.queued:
            self._connection.outbox.queue(self)

    def abort(self) -> None:
        if not self.gone:
            self._connection.cancel(self)

    def left(self) -> None:
        """Ends the stream, whether the client has everything, disconnected, or was cut off."""
        self.gone = True
        self._pending.clear()
        self._pending_size = self._offset = 0
        self._chunk, self._source = b"", None
        if not self.closed:
            self.closed = True
            self._stopped()

    @property
    def streaming(self) -> bool:
        return self._stream is not None and not self.closed

    def _stopped(self) -> None:
        if self._stream is not None:
            self._connection.host.loop.call_soon(stop, self._stream)
