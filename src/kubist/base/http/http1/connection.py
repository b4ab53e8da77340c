"""HTTP/1.1: passes requests to the application one by one and sends the responses in the same order.

A small response is one write. A large response is sent in pieces, as fast as the client reads.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator

from kubist.base.eager_task import begin
from kubist.base.http.bodies import WINDOW, size, windows
from kubist.base.http.connection import NEVER, Connection, Host, log, stop
from kubist.base.http.http1.reader import Reader, Refusal
from kubist.base.http.http1.response_head import BODILESS, head
from kubist.base.http.http1.writers import ChunkedWriter, RawWriter, Tunnel
from kubist.base.http.messages import Answer, HangUp, Request, Response, Stream
from kubist.base.http.websocket import WebSocket, handshake, is_upgrade

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_CLOSE = b"Connection: close\r\n"
_KEEP_ALIVE = b"Connection: keep-alive\r\n"
_CHUNKED = b"Transfer-Encoding: chunked\r\n"
_LINGER_STEP = 0.5
_TURN = 64 * 1024
"""Maximum bytes parsed in one turn of the event loop, because a body may arrive in chunks of one byte."""
_BURST = 8
"""Maximum requests started in one turn of the event loop. Further pipelined requests wait for the next turn."""


class Http1(Connection):
    """One HTTP/1.1 connection. `_queue` holds pipelined requests, and a rejection."""

    __slots__ = (
        "_burst", "_busy", "_continue", "_current", "_eof", "_keep_alive", "_lingered", "_queue", "_reader", "_reading",
        "_refused", "_rest", "_sending", "_task", "_writer", "heard",
    )  # fmt: skip

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._reader = Reader(self)
        self._queue: deque[Request | Refusal] = deque()
        self._reading = True
        self._rest = b""
        self._refused = False
        self._eof = False
        self._continue = False
        self.heard = False
        self._lingered = 0.0
        self._burst = 0

        self._busy = False
        self._keep_alive = True
        self._current: Request | None = None
        self._task: asyncio.Task[None] | None = None
        self._writer: RawWriter | None = None
        self._sending: Iterator[bytes] | None = None

    # The connection

    def data_received(self, data: bytes) -> None:
        if self._rest:
            self._rest += data
        elif isinstance(self._writer, (WebSocket, Tunnel)):
            self._writer.receive(data)
        elif self._refused:
            self.heard = True
        else:
            if len(data) > _TURN:
                data, self._rest = data[:_TURN], data[_TURN:]
                self.transport.pause_reading()
                self.host.loop.call_soon(self._read_on)
            self._burst = 0
            try:
                self._reader.feed(data)
            except Refusal as refusal:
                self._refuse(refusal)

    def _read_on(self) -> None:
        """Parses the data that the last turn of the event loop left over."""
        data, self._rest = self._rest, b""
        if self.lost:
            return
        self.data_received(data)
        if not self._rest and self._reading:
            self.transport.resume_reading()

    def eof_received(self) -> bool:
        self._eof = True
        if self._writer is not None:
            self._writer.gone()
            return False
        return self._busy and self.tls is None

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._queue.clear()
        self._reader.close()
        self._sending = None
        self._task = None
        if self._writer is not None:
            self._writer.gone()
            self._writer = None

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._writer is not None:
            self._writer.flush()
        elif self._sending is not None:
            self._send_on()
        else:
            self._next()

    def expire(self) -> None:
        if self.transport.is_closing() or self.host.now > self.stall_deadline:
            self.transport.abort()
        elif self._reader.in_message and not self._busy and not self._refused:
            self._refuse(Refusal(408))
        else:
            self.close(hurry=True)

    def shutdown(self) -> None:
        if self._writer is not None:
            self._writer.close()
        elif not self._busy and not self._reader.in_message:
            self.close()

    def tasks(self) -> list[asyncio.Task[None]]:
        return [self._task] if self._task is not None else []

    # Requests, one after the other

    def take(self, request: Request | Refusal) -> None:
        if not self._busy and self.writable and not self._queue and self._burst < _BURST:
            self._burst += 1
            self._begin(request)
            return
        self._queue.append(request)
        if not self._busy:
            self.host.loop.call_soon(self._next)
        if len(self._queue) > self.host.limits.pipelined_requests:
            self._queue.pop()
            raise Refusal(400)
        if self._reading and self._writer is None:
            self._reading = False
            self.transport.pause_reading()

    def _begin(self, request: Request | Refusal) -> None:
        self._busy = True
        self._continue = False
        if isinstance(request, Refusal):
            self._current = None
            self._keep_alive = False
            self._send(request.response())
            return
        self._current = request
        # The parser may already be at the next request, so keep-alive is decided here.
        self._keep_alive = not request.body_too_large and _keeps_alive(request)
        self._task = begin(self._work(request), self.host.loop)

    def expect_body(self) -> None:
        """Sends 100 Continue, now or when the earlier requests are answered."""
        if self._busy or self._queue:
            self._continue = True
        else:
            self.transport.write(_CONTINUE)

    async def _work(self, request: Request) -> None:
        try:
            answer = await self.host.application(request)
        except asyncio.CancelledError:
            self.transport.abort()
            raise
        except HangUp as end:
            self._end_early(end)
            return
        except Exception:
            answer = self.host.failure(request)
        self._task = None
        try:
            self._reply(request, answer)
        except Exception:
            log.exception("sending the response to %s %s failed", request.method, request.path)
            self.transport.abort()
            if isinstance(answer, Stream) and self._writer is None:
                stop(answer)

    def _next(self) -> None:
        """Starts the next queued request, or waits for one."""
        if self._busy or self.lost:
            return
        if self._queue and self.writable:
            self._begin(self._queue.popleft())
            return
        if not self._queue:
            if self._continue:
                self._continue = False
                self.transport.write(_CONTINUE)
            self._resume_reading()

    def _resume_reading(self) -> None:
        if not self._reading:
            self._reading = True
            if not self._rest:
                self.transport.resume_reading()

    def _refuse(self, refusal: Refusal) -> None:
        self._refused = True
        self._reader.abandon()
        self.deadline = NEVER
        if self._busy or self._queue or not self.writable:
            self._queue.append(refusal)
        else:
            self._begin(refusal)

    # Responses

    def _reply(self, request: Request, answer: Answer) -> None:
        if self.lost or self.transport.is_closing():
            if isinstance(answer, Stream):
                stop(answer)
        elif isinstance(answer, Response):
            self._send(answer)
        elif request.method == "HEAD":
            self._send(Response(answer.status, answer.headers))
            stop(answer)
        else:
            self._stream(request, answer)

    def _end_early(self, end: HangUp) -> None:
        """Sends the part of the response that the application chose, then closes the connection."""
        self._task = None
        response = end.response
        if response is None or self.lost or self.transport.is_closing():
            self.transport.abort()
            return
        whole = response.body if isinstance(response.body, bytes) else b"".join(response.body)
        length_line = b"Content-Length: %d\r\n\r\n" % len(whole)
        self.transport.write(head(response.status, response.headers, self.host.date, length_line))
        self.transport.write(whole[: end.sent])
        self.answered(keep_alive=False)

    def _send(self, response: Response) -> None:
        if self.host.stopping or self._eof:
            self._keep_alive = False
        body = response.body
        length = len(body) if isinstance(body, bytes) else size(body)
        status = response.status
        length_line = b"\r\n" if status in BODILESS else b"Content-Length: %d\r\n\r\n" % length
        request = self._current
        if not self._keep_alive:
            top = head(status, response.headers, self.host.date, _CLOSE, length_line)
        elif request is not None and request.http_version == "1.0":
            top = head(status, response.headers, self.host.date, _KEEP_ALIVE, length_line)
        else:
            top = head(status, response.headers, self.host.date, length_line)
        if not length or status in BODILESS or (request is not None and request.method == "HEAD"):
            self.transport.write(top)
        elif length <= WINDOW:
            self.transport.write(top + body if isinstance(body, bytes) else b"".join((top, *body)))
        else:
            self._sending = windows(top, body)
            self._send_on()
            return
        self.answered(self._keep_alive)

    def _send_on(self) -> None:
        """Sends one piece per turn of the loop, so that a large response does not delay others."""
        if self._sending is None or not self.writable:
            return
        piece = next(self._sending, None)
        if piece is None:
            self._sending = None
            self.answered(self._keep_alive)
        else:
            self.transport.write(piece)
            self.host.loop.call_soon(self._send_on)

    def _stream(self, request: Request, stream: Stream) -> None:
        date = self.host.date
        writer: RawWriter
        if stream.received is not None:
            self._keep_alive = False
            writer = Tunnel(self, stream, head(stream.status, stream.headers, date, b"\r\n"))
        elif stream.status < 400 and is_upgrade(request):
            reply = handshake(request, stream)
            if isinstance(reply, Response):
                self._keep_alive = False
                self._send(reply)
                stop(stream)
                return
            writer = WebSocket(self, stream, reply)
        elif request.http_version == "1.0":
            writer = RawWriter(self, stream, head(stream.status, stream.headers, date, _CLOSE, b"\r\n"))
        else:
            ending = _CHUNKED + b"\r\n" if self._keep_alive else _CHUNKED + _CLOSE + b"\r\n"
            writer = ChunkedWriter(self, stream, head(stream.status, stream.headers, date, ending))
        self._writer = writer
        self._resume_reading()
        writer.start()
        if self.host.stopping:
            writer.close()

    def answered(self, keep_alive: bool) -> None:
        """Handles a response that was passed to the transport in full: next request, linger or close."""
        self._writer = None
        self._busy = False
        request, self._current = self._current, None
        if keep_alive and self._keep_alive and not self.host.stopping and not self._eof:
            if not self._reader.in_message and not self._queue:
                self.deadline = self.host.now + self.host.limits.idle_timeout
            if self._queue:
                # Waits one turn of the loop between two responses, because recursion could be a thousand calls deep.
                self.host.loop.call_soon(self._next)
            elif self._continue or not self._reading:
                self._next()
            return
        self._queue.clear()
        if (request is not None and request.body_too_large and self._reader.in_body) or self._refused:
            self._refused = True
            self._linger()
        else:
            self.close()

    def _linger(self) -> None:
        """Keeps reading for a while, because closing while the client still sends would discard the response."""
        if self.lost:
            return
        limit = self.host.limits.linger_timeout
        step = min(_LINGER_STEP, limit / 4)
        if not self.heard and self._lingered:
            self.close(hurry=True)
            return
        if self._lingered > limit:
            self.transport.abort()
            return
        self.heard = False
        self._lingered += step
        self._resume_reading()
        self.host.loop.call_later(step, self._linger)


def _keeps_alive(request: Request) -> bool:
    connection = request.headers.get("connection")
    if request.http_version == "1.0":
        return connection is not None and "keep-alive" in connection.lower()
    return connection is None or "close" not in connection.lower()
