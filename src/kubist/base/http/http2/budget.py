"""Memory budget of one HTTP/2 connection for the headers and bodies of unanswered requests.

Every body may have the bytes of its initial window. A larger body first reserves the rest, so an admitted body
can always be completed. Bodies without room wait in order.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from kubist.base.http.http2.exchange import Exchange
from kubist.base.http.http2.frames import window_update

if TYPE_CHECKING:
    from kubist.base.http.http2.connection import Http2

_PADDING = 256
"""Maximum padding of a frame, in bytes. The window gets it back, but must have room for it until then."""


class Budget:
    """Free bytes for headers (`_heads`) and bodies (`_bodies`) of a connection."""

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
        """Lets the client send the rest of a body, now or when the budget has room."""
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
        """Releases everything that a request reserved, and admits waiting bodies."""
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
