"""HTTP/1.1 on llhttp: requests are parsed as they come, handed to the application one after the other, and
answered in their order, small answers with a single write.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator

import httptools

from kubist.http.bodies import WINDOW, size, windows
from kubist.http.connection import NEVER, Connection, Host, header_name, stop
from kubist.http.heads import BODILESS, head
from kubist.http.messages import Answer, Request, Response, Stream
from kubist.http.websocket import WebSocket, handshake, is_upgrade
from kubist.http.writers import ChunkedWriter, RawWriter

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_CLOSE = b"Connection: close\r\n"
_KEEP_ALIVE = b"Connection: keep-alive\r\n"
_CHUNKED = b"Transfer-Encoding: chunked\r\n"
_LINGER_STEP = 0.5


class _Refusal(Exception):
    """The request cannot be understood or accepted; the connection ends with this status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Http1(Connection):
    """One connection. Reading side: the request being parsed. Answering side: one request at a time."""

    __slots__ = (
        "_body", "_body_size", "_busy", "_continue", "_current", "_eof",
        "_head_count", "_head_left", "_headers", "_heard", "_in_body", "_in_head", "_keep_alive", "_lingered",
        "_oversized", "_parser", "_queue", "_reading", "_refused", "_sending", "_task", "_url", "_version",
        "_writer",
    )  # fmt: skip

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._parser = httptools.HttpRequestParser(self)
        self._queue: deque[Request | int] = deque()
        self._reading = True
        self._in_head = False
        self._in_body = False
        self._refused = False
        self._eof = False
        self._heard = False
        self._lingered = 0.0
        self._url = b""
        self._version = "1.1"
        self._headers: dict[str, str] = {}
        self._head_left = 0
        self._head_count = 0
        self._body: list[bytes] = []
        self._body_size = 0
        self._oversized = False
        self._continue = False

        self._busy = False
        self._keep_alive = True
        self._current: Request | None = None
        self._task: asyncio.Task[None] | None = None
        self._writer: RawWriter | None = None
        self._sending: Iterator[bytes] | None = None

    # The connection

    def data_received(self, data: bytes) -> None:
        if isinstance(self._writer, WebSocket):
            self._writer.receive(data)
            return
        if self._refused:
            self._heard = True
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._parser = httptools.HttpRequestParser(self)
            rest = data[upgrade.args[0] :]
            if rest:
                self.data_received(rest)
            return
        except httptools.HttpParserCallbackError as error:
            if not isinstance(error.__context__, _Refusal):
                raise
            self._refuse(error.__context__.status)
            return
        except httptools.HttpParserError:
            self._refuse(400)
            return
        if self._in_head:
            self._head_left -= len(data)
            if self._head_left < 0:
                self._refuse(431)

    def eof_received(self) -> bool:
        self._eof = True
        if self._writer is not None:
            self._writer.gone()
            return False
        return self._busy and self.tls is None

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._queue.clear()
        self._sending = None
        self.deadline = self.stall_deadline = NEVER
        if self._writer is not None:
            self._writer.gone()
            self._writer = None
        if self._task is not None:
            self.host.adopt(self._task)
            self._task = None

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._writer is not None:
            self._writer.flush()
        elif self._sending is not None:
            self._send_on()
        elif not self._busy:
            self._next()

    def expire(self) -> None:
        if self.writable and (self._in_head or self._in_body) and not self._busy and not self._refused:
            self._refuse(408)
        else:
            self.transport.abort()

    def shutdown(self) -> None:
        if self._writer is not None:
            self._writer.close()
        elif not self._busy and not self._in_head and not self._in_body:
            self.close()

    def tasks(self) -> list[asyncio.Task[None]]:
        return [self._task] if self._task is not None else []

    # The parser's events

    def on_message_begin(self) -> None:
        self._in_head = True
        self._url = b""
        self._headers = {}
        self._head_left = self.host.limits.header_bytes
        self._head_count = self.host.limits.header_count
        self.deadline = self.host.now + self.host.limits.header_timeout

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_left -= len(name) + len(value)
        self._head_count -= 1
        if self._head_left < 0 or self._head_count < 0:
            raise _Refusal(431)
        if self._in_body:
            return
        key = header_name(name)
        text = value.decode("utf-8", "replace")
        if key in self._headers:
            if key == "host":
                raise _Refusal(400)
            text = f"{self._headers[key]}, {text}"
        self._headers[key] = text

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._in_body = True
        self._body = []
        self._body_size = 0
        self._oversized = False
        headers = self._headers
        self._version = version = self._parser.get_http_version()
        if version != "1.1" and version != "1.0":
            raise _Refusal(505)
        if version == "1.1" and "host" not in headers:
            raise _Refusal(400)
        encoding = headers.get("transfer-encoding")
        if encoding is not None:
            if version != "1.1":
                raise _Refusal(400)
            if encoding.lower() != "chunked":
                raise _Refusal(501)
        elif "content-length" not in headers:
            return
        self.deadline = self.host.now + self.host.limits.body_timeout
        if encoding is None and int(headers["content-length"]) > self.host.limits.body_bytes:
            self._oversize()
        elif "expect" in headers and version == "1.1":
            if headers["expect"].lower() != "100-continue":
                raise _Refusal(417)
            if self._busy:
                self._continue = True
            else:
                self.transport.write(_CONTINUE)

    def on_body(self, data: bytes) -> None:
        if self._oversized:
            self._heard = True
            return
        self._body.append(data)
        self._body_size += len(data)
        if self._body_size > self.host.limits.body_bytes:
            self._oversize()

    def on_message_complete(self) -> None:
        self._in_body = False
        self._continue = False
        self.deadline = NEVER
        if self._oversized:
            return
        body = self._body
        self._take(self._request(b"" if not body else body[0] if len(body) == 1 else b"".join(body)))

    def _oversize(self) -> None:
        self._oversized = True
        self._body = []
        request = self._request(b"")
        request.body_too_large = True
        self._take(request)

    def _request(self, body: bytes) -> Request:
        target = self._url.decode("ascii", "replace")
        if target[0] != "/" and target != "*":
            # The absolute form, as sent to a proxy. What CONNECT names is no path at all.
            _, scheme, rest = target.partition("://")
            if not scheme:
                raise _Refusal(400)
            authority, slash, path = rest.partition("/")
            if not slash:
                path = authority.partition("?")[2] and f"?{authority.partition('?')[2]}"
            target = f"/{path}"
        path, _, query = target.partition("?")
        return Request(
            self._parser.get_method().decode("ascii"),
            path,
            query,
            self._headers,
            body,
            self.peer,
            self._version,
            self._certificate if self._certificate_known else self.certificate,
            self.scratch,
        )

    # Requests, one after the other

    def _take(self, request: Request | int) -> None:
        if not self._busy and self.writable and not self._queue:
            self._begin(request)
            return
        self._queue.append(request)
        if len(self._queue) > self.host.limits.pipelined_requests:
            self._queue.pop()
            raise _Refusal(400)
        if self._reading and self._writer is None:
            self._reading = False
            self.transport.pause_reading()

    def _begin(self, request: Request | int) -> None:
        self._busy = True
        if isinstance(request, int):
            self._current = None
            self._keep_alive = False
            self._send(Response(request, []))
            return
        self._current = request
        # The parser may already be at the next request; what it says of this one is known only now.
        self._keep_alive = not request.body_too_large and _keeps_alive(request)
        self._task = self.host.spawn(self._work(request))

    async def _work(self, request: Request) -> None:
        try:
            answer = await self.host.ask(request)
        except asyncio.CancelledError:
            self.transport.abort()
            raise
        self._task = None
        self._reply(request, answer)

    def _next(self) -> None:
        """Idle: take the next request that is already here, or wait for one."""
        if self._queue and self.writable:
            self._begin(self._queue.popleft())
            return
        if not self._queue:
            if self._continue:
                self._continue = False
                self.transport.write(_CONTINUE)
            if not self._reading:
                self._reading = True
                self.transport.resume_reading()

    def _refuse(self, status: int) -> None:
        self._refused = True
        self._in_head = self._in_body = False
        self.deadline = NEVER
        if self._busy or self._queue or not self.writable:
            self._queue.append(status)
        else:
            self._begin(status)

    # Answers

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
        elif self._version == "1.0":
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
        """Give the transport one piece a turn, so that a large answer does not hold up the others."""
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
        if is_upgrade(request):
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
        writer.start()
        if self.host.stopping:
            writer.close()

    def answered(self, keep_alive: bool) -> None:
        """The current answer has been handed to the transport in full."""
        self._writer = None
        self._busy = False
        request, self._current = self._current, None
        if keep_alive and self._keep_alive and not self.host.stopping and not self._eof:
            if not self._in_head and not self._in_body and not self._queue:
                self.deadline = self.host.now + self.host.limits.idle_timeout
            if self._queue or self._continue or not self._reading:
                self._next()
            return
        self._queue.clear()
        if (request is not None and request.body_too_large and self._in_body) or self._refused:
            self._refused = True
            self._linger()
        else:
            self.close()

    def _linger(self) -> None:
        """Read on for a while: closing on a client that still sends would take the answer from it."""
        if self.lost:
            return
        limit = self.host.limits.linger_timeout
        step = min(_LINGER_STEP, limit / 4)
        if not self._heard and self._lingered:
            self.close(hurry=True)
            return
        if self._lingered > limit:
            self.transport.abort()
            return
        self._heard = False
        self._lingered += step
        if not self._reading:
            self._reading = True
            self.transport.resume_reading()
        self.host.loop.call_later(step, self._linger)


def _keeps_alive(request: Request) -> bool:
    connection = request.headers.get("connection")
    if request.http_version == "1.0":
        return connection is not None and "keep-alive" in connection.lower()
    return connection is None or "close" not in connection.lower()
