"""Tunnel: a connection that is no longer HTTP after the head of the response. Bytes pass unchanged in both
directions."""

from __future__ import annotations

from kubist.base.http.writers import RawWriter


class Tunnel(RawWriter):
    """Client side of a tunnel. Writes are sent at once, without gathering."""

    __slots__ = ()

    def write(self, data: bytes) -> None:
        super().write(data)
        self.flush()

    def receive(self, data: bytes) -> None:
        if self._stream.received is not None and not self.closed:
            self._stream.received(data)
