"""HTTP/2 (RFC 9113) server connection: its streams, and the limits on the client.

`Inbox` receives bytes, `Outbox` sends bytes, `Exchange` has the state of one stream.
"""

from __future__ import annotations

import asyncio

from kubist.base.eager_task import begin
from kubist.base.http.bodies import joined
from kubist.base.http.connection import NEVER, Connection, Host
from kubist.base.http.http2.budget import Budget
from kubist.base.http.http2.exchange import Exchange
from kubist.base.http.http2.fields import Malformed, check_trailers, request_fields
from kubist.base.http.http2.frames import (
    DEFAULT_FRAME_SIZE,
    DEFAULT_WINDOW,
    LARGEST_FRAME_SIZE,
    LARGEST_WINDOW,
    ConnectionFault,
    Error,
    Flag,
    Kind,
    Setting,
    StreamFault,
    frame,
    goaway,
    reset,
    settings,
    window_update,
)
from kubist.base.http.http2.hpack import Header
from kubist.base.http.http2.inbox import Inbox
from kubist.base.http.http2.outbox import Outbox
from kubist.base.http.messages import Headers, Request

_STREAM_WINDOW = DEFAULT_WINDOW
_CONNECTION_WINDOW = 4 * 1024 * 1024


class Http2(Connection):
    """One HTTP/2 connection. `_zombies` are exchanges that the client has reset while the application still
    works on them."""

    __slots__ = (
        "_budget", "_inbox", "_last", "_receive_window", "_receiving", "_stalled", "_streams", "_zombies",
        "ending", "outbox",
    )  # fmt: skip

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._inbox = Inbox(self)
        self.outbox = Outbox(self)
        self.ending = False
        self._last = 0
        self._receive_window = _CONNECTION_WINDOW
        self._budget = Budget(self)
        self._streams: dict[int, Exchange] = {}
        self._receiving: dict[int, Exchange] = {}
        self._stalled: dict[int, Exchange] = {}
        self._zombies: set[Exchange] = set()

    # The connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        ours = {
            Setting.MAX_CONCURRENT_STREAMS: self.host.limits.streams,
            Setting.INITIAL_WINDOW_SIZE: _STREAM_WINDOW,
            Setting.MAX_HEADER_LIST_SIZE: self.host.limits.header_bytes,
        }
        self.outbox.send(settings(ours) + window_update(0, _CONNECTION_WINDOW - DEFAULT_WINDOW))

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        inbox = self._inbox
        if inbox.behind:
            inbox.keep(data)
            return
        try:
            inbox.feed(data)
        except ConnectionFault as fault:
            self._fail(fault.code)
            return
        if inbox.behind:
            self.transport.pause_reading()
            if not inbox.decoding:
                self.host.loop.call_soon(self.catch_up)

    def catch_up(self) -> None:
        """Parses the frames that the last turn of the event loop left over."""
        if self.lost or self.transport.is_closing():
            return
        try:
            self._inbox.catch_up()
        except ConnectionFault as fault:
            self._fail(fault.code)
            return
        if not self._inbox.behind:
            if self.writable:
                self.transport.resume_reading()
        elif not self._inbox.decoding:
            self.host.loop.call_soon(self.catch_up)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        for exchange in self._streams.values():
            exchange.left()
        for collection in (self._streams, self._receiving, self._stalled):
            collection.clear()
        self._budget.clear()
        self.outbox.clear()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.transport.is_closing() and not self._inbox.behind:
            self.transport.resume_reading()
        self.outbox.schedule()

    def expire(self) -> None:
        now = self.host.now
        if now > self.stall_deadline or not self._inbox.settled or self.transport.is_closing():
            self.transport.abort()
        elif self._inbox.in_block:
            self._fail(Error.ENHANCE_YOUR_CALM)
        else:
            late = [e for e in self._receiving.values() if now > e.deadline]
            late += [e for e in self._stalled.values() if now > e.stall_deadline]
            for exchange in late:
                self.cancel(exchange)
            if not late:
                self.shutdown()

    def retire(self) -> None:
        """Sends GOAWAY: accepts no further requests, and closes after the current ones are answered."""
        if not self.ending:
            self.ending = True
            self.outbox.send(goaway(self._last, Error.NO_ERROR))

    def shutdown(self) -> None:
        self.retire()
        for exchange in list(self._streams.values()):
            if exchange.streaming:
                exchange.close()

    def end(self) -> None:
        """Closes the connection if all responses have been sent."""
        if not self._streams and self.outbox.empty:
            self.close()

    def tasks(self) -> list[asyncio.Task[None]]:
        at_work = (exchange.task for exchange in (*self._streams.values(), *self._zombies))
        return [task for task in at_work if task is not None and not task.done()]

    def rest(self) -> None:
        """Updates the deadline of the connection."""
        if self._inbox.in_block:
            return
        if not self._streams:
            self.deadline = self.host.now + self.host.limits.idle_timeout
            return
        receiving = next(iter(self._receiving.values()), None)
        stalled = next(iter(self._stalled.values()), None)
        self.deadline = min(
            NEVER if receiving is None else receiving.deadline,
            NEVER if stalled is None else stalled.stall_deadline,
        )

    def _fail(self, code: int) -> None:
        """Ends the connection after a protocol error, with GOAWAY and its code."""
        self.ending = True
        for exchange in list(self._streams.values()):
            self.abandon(exchange)
        self.transport.write(self.outbox.drain() + goaway(self._last, code))
        self.close()
        self.deadline = self.host.now + self.host.limits.linger_timeout

    # Events of the inbox

    def headers(self, stream: int, received: list[Header], size: int, *, end: bool) -> None:
        if (exchange := self._streams.get(stream)) is not None:
            self._trailers(exchange, received, end=end)
        elif stream <= self._last:
            raise ConnectionFault(Error.STREAM_CLOSED, "headers on a closed stream")
        elif not self.ending:
            self._last = stream
            at_work = len(self._streams) + len(self._zombies)
            if at_work >= self.host.limits.streams or not self._budget.has_room(size):
                raise StreamFault(stream, Error.REFUSED_STREAM)
            self._request(stream, received, size, end=end)

    def data(self, stream: int, content: bytes, length: int, *, end: bool) -> None:
        """Receives a DATA frame. `length` counts against the windows: `content` and its padding."""
        if not stream or (stream > self._last and not self.ending):
            raise ConnectionFault(Error.PROTOCOL_ERROR, "DATA on an idle stream")
        self._receive_window -= length
        if self._receive_window < 0:
            raise ConnectionFault(Error.FLOW_CONTROL_ERROR, "more than the connection's window")
        if self._receive_window < _CONNECTION_WINDOW // 2:
            self.outbox.send(window_update(0, _CONNECTION_WINDOW - self._receive_window))
            self._receive_window = _CONNECTION_WINDOW
        exchange = self._streams.get(stream)
        if stream > self._last:
            return
        if exchange is None or exchange.received:
            raise StreamFault(stream, Error.STREAM_CLOSED)
        exchange.receive_window -= length
        if exchange.receive_window < 0:
            raise StreamFault(stream, Error.FLOW_CONTROL_ERROR)
        if (padding := length - len(content)) and not end:
            exchange.receive_window += padding
            self.outbox.send(window_update(stream, padding))
        if not exchange.request.body_too_large:
            exchange.receive(content)
            if exchange.body_size > self.host.limits.body_bytes:
                self._oversize(exchange)
            elif exchange.receive_window < _STREAM_WINDOW // 2 and not end:
                self._budget.widen(exchange)
        if end:
            self._body_complete(exchange)

    def widen(self, stream: int, increment: int) -> None:
        if stream > self._last and not self.ending:
            raise ConnectionFault(Error.PROTOCOL_ERROR, "WINDOW_UPDATE on an idle stream")
        if not stream:
            if not increment:
                raise ConnectionFault(Error.PROTOCOL_ERROR, "an empty WINDOW_UPDATE")
            if self.outbox.window + increment > LARGEST_WINDOW:
                raise ConnectionFault(Error.FLOW_CONTROL_ERROR, "a window too large")
            self.outbox.window += increment
            self._stalled = {number: e for number, e in self._stalled.items() if e.window <= 0}
            self.outbox.schedule()
        elif (exchange := self._streams.get(stream)) is not None:
            if not increment:
                raise StreamFault(stream, Error.PROTOCOL_ERROR)
            if exchange.window + increment > LARGEST_WINDOW:
                raise StreamFault(stream, Error.FLOW_CONTROL_ERROR)
            self._stalled.pop(stream, None)
            self.outbox.widen(exchange, increment)
        self.rest()

    def settings(self, values: list[tuple[int, int]]) -> None:
        """Applies the client's settings. Each occurs only once, because a change of the window visits all streams."""
        streams = self._streams.values()
        for key, value in values:
            if key == Setting.INITIAL_WINDOW_SIZE:
                change = value - self.outbox.initial_window
                self.outbox.initial_window = value
                if value > LARGEST_WINDOW or any(e.window + change > LARGEST_WINDOW for e in streams):
                    raise ConnectionFault(Error.FLOW_CONTROL_ERROR, "a window too large")
                for exchange in streams:
                    self.outbox.widen(exchange, change)
            elif key == Setting.MAX_FRAME_SIZE:
                if not DEFAULT_FRAME_SIZE <= value <= LARGEST_FRAME_SIZE:
                    raise ConnectionFault(Error.PROTOCOL_ERROR, "MAX_FRAME_SIZE")
                self.outbox.frame_size = min(value, _STREAM_WINDOW)
            elif key == Setting.ENABLE_PUSH and value > 1:
                raise ConnectionFault(Error.PROTOCOL_ERROR, "ENABLE_PUSH")
        self.outbox.send(frame(Kind.SETTINGS, Flag.ACK, 0))

    def was_reset(self, stream: int) -> None:
        if stream > self._last and not self.ending:
            raise ConnectionFault(Error.PROTOCOL_ERROR, "RST_STREAM on an idle stream")
        if (exchange := self._streams.get(stream)) is not None:
            self.abandon(exchange)

    # Requests

    def _request(self, stream: int, received: list[Header], size: int, *, end: bool) -> None:
        try:
            method, path, query, headers, repeated = request_fields(received)
        except Malformed:
            raise StreamFault(stream, Error.PROTOCOL_ERROR) from None
        if len(path) > self.host.limits.path_bytes:
            self._inbox.count()
            self.outbox.refuse(stream, 414, received=end)
            return
        expected = int(headers.get("content-length", -1))
        if expected > 0 and end:
            raise StreamFault(stream, Error.PROTOCOL_ERROR)
        request = Request(
            method, path, query, headers, b"", self.peer, "2", self.peer_certificates, self.scratch
        )
        request.repeated = repeated
        exchange = Exchange(self, stream, request, size, self.outbox.initial_window, _STREAM_WINDOW)
        self._streams[stream] = exchange
        self._budget.take_head(exchange)
        if end:
            exchange.received = True
            if len(self._streams) == 1:
                self.deadline = NEVER
            exchange.task = begin(exchange.work(), self.host.loop)
            return
        exchange.expected = expected
        exchange.deadline = self.host.now + self.host.limits.body_timeout
        self._receiving[stream] = exchange
        self.rest()
        if expected > self.host.limits.body_bytes:
            self._oversize(exchange)
        elif headers.get("expect", "").lower() == "100-continue":
            self.outbox.continue_(stream)

    def _trailers(self, exchange: Exchange, received: list[Header], *, end: bool) -> None:
        if exchange.received:
            raise StreamFault(exchange.id, Error.STREAM_CLOSED)
        try:
            check_trailers(received, end=end)
        except Malformed:
            raise StreamFault(exchange.id, Error.PROTOCOL_ERROR) from None
        self._body_complete(exchange)

    def wait_for_room(self, exchange: Exchange) -> None:
        """Exempts a body that waits for the budget from the body deadline, because its client is not late."""
        self._receiving.pop(exchange.id, None)
        self.rest()

    def receive_on(self, exchange: Exchange) -> None:
        """Restarts the body deadline when the body has received its budget."""
        exchange.deadline = self.host.now + self.host.limits.body_timeout
        self._receiving[exchange.id] = exchange
        self.rest()

    def _oversize(self, exchange: Exchange) -> None:
        exchange.body = []
        self._budget.release_body(exchange)
        exchange.request.body_too_large = True
        exchange.task = begin(exchange.work(), self.host.loop)

    def _body_complete(self, exchange: Exchange) -> None:
        exchange.received = True
        self._receiving.pop(exchange.id, None)
        self.rest()
        if exchange.request.body_too_large:
            return
        if exchange.expected not in (-1, exchange.body_size):
            raise StreamFault(exchange.id, Error.PROTOCOL_ERROR)
        self._inbox.spend(exchange.head_size)
        exchange.request.body = joined(exchange.body)
        exchange.body = []
        exchange.task = begin(exchange.work(), self.host.loop)

    # Responses

    def head(
        self, exchange: Exchange, status: int, headers: Headers, length: int | None, *, end: bool
    ) -> None:
        self.outbox.headers(exchange.id, status, headers, length, end=end)
        if end:
            self.answered(exchange)

    def answered(self, exchange: Exchange) -> None:
        """Handles a response that was sent or queued in full."""
        if not exchange.received:
            self.outbox.send(reset(exchange.id, Error.NO_ERROR))
        if exchange.request.retires:
            self.retire()
        self._drop(exchange)

    def stall(self, exchange: Exchange) -> None:
        """Records that the exchange waits for the client to open a window."""
        if exchange.id not in self._stalled:
            exchange.stall_deadline = self.host.now + self.host.limits.stall_timeout
            self._stalled[exchange.id] = exchange
            self.rest()

    def cancel(self, exchange: Exchange) -> None:
        self.reset(exchange.id, Error.CANCEL)

    def reset(self, stream: int, code: int) -> None:
        self.outbox.send(reset(stream, code))
        if (exchange := self._streams.get(stream)) is not None:
            self.abandon(exchange)

    def abandon(self, exchange: Exchange) -> None:
        """Drops the stream without a response. The application finishes the request."""
        self._drop(exchange)
        if exchange.task is not None and not exchange.task.done():
            self._zombies.add(exchange)

    def forget(self, exchange: Exchange) -> None:
        self._zombies.discard(exchange)
        self._budget.release(exchange)

    def _drop(self, exchange: Exchange) -> None:
        self._streams.pop(exchange.id, None)
        self._receiving.pop(exchange.id, None)
        self._stalled.pop(exchange.id, None)
        exchange.left()
        if exchange.task is None or exchange.task.done():
            self._budget.release(exchange)
        self.rest()
        if self.ending:
            self.outbox.schedule()
