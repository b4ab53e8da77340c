"""Memory that the unanswered requests of one HTTP/2 connection may hold together: headers and bodies.

Every body may have one window's worth of bytes. A larger body reserves the rest first, so bodies that were let in can
always be completed; those that find no room wait in order.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from kubist.http.exchange import Exchange
from kubist.http.frames import window_update

if TYPE_CHECKING:
    from kubist.http.http2 import Http2

_PADDING = 256
"""Most bytes of padding in a frame. They are returned to the window, but it must have room for them until then."""


class Budget:
    """`_heads` and `_bodies` are the bytes that are still free."""

    __slots__ = ("_bodies", "_connection", "_heads", "_waiting")

    def __init__(self, connection: Http2) -> None:
        limits = connection.host.limits
        self._connection = connection
        self._heads = limits.connection_header_bytes
        self._bodies = max(limits.connection_body_bytes, limits.body_bytes + 1)
        self._waiting: deque[Exchange] = deque()

    def has_room(self, head_size: int) -> bool:
        return head_size <= self._heads

    def take_head(self, exchange: Exchange) -> None:
        self._heads -= exchange.head_size

    def widen(self, exchange: Exchange) -> None:
        """Let the client send the rest of a body, now or when there is room for it."""
        if exchange.reserved or exchange.waits:
            return
        needed = self._needed(exchange)
        if needed <= 0:
            return
        if self._waiting or needed > self._bodies:
            exchange.waits = True
            self._waiting.append(exchange)
            self._connection.wait_for_room(exchange)
        else:
            self._reserve(exchange, needed)

    def release(self, exchange: Exchange) -> None:
        """Return all that a request held, and let those go on that wait for it."""
        self._heads += exchange.head_size
        exchange.head_size = 0
        if exchange.reserved or self._waiting:
            self.release_body(exchange)

    def release_body(self, exchange: Exchange) -> None:
        self._bodies += exchange.reserved
        exchange.reserved = 0
        while self._waiting:
            first = self._waiting[0]
            if not first.gone:
                needed = self._needed(first)
                if needed > self._bodies:
                    return
                first.waits = False
                self._reserve(first, needed)
                self._connection.receive_on(first)
            self._waiting.popleft()

    def clear(self) -> None:
        self._waiting.clear()

    def _needed(self, exchange: Exchange) -> int:
        whole = exchange.expected if exchange.expected >= 0 else self._connection.host.limits.body_bytes + 1
        return whole + _PADDING - exchange.body_size - exchange.receive_window

    def _reserve(self, exchange: Exchange, needed: int) -> None:
        self._bodies -= needed
        exchange.reserved = needed
        exchange.receive_window += needed
        self._connection.outbox.send(window_update(exchange.id, needed))
