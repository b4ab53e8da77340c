"""A connection that is no longer HTTP: after the answer's head, bytes go both ways as they are."""

from __future__ import annotations

from kubist.http.writers import RawWriter


class Tunnel(RawWriter):
    """The client's end. What goes back and forth is a conversation: nothing is gathered."""

    __slots__ = ()

    def write(self, data: bytes) -> None:
        super().write(data)
        self.flush()

    def receive(self, data: bytes) -> None:
        if self._stream.received is not None and not self.closed:
            self._stream.received(data)

    def listen(self, willing: bool) -> None:
        """Whether more is taken from the client."""
        if not self._connection.lost:
            transport = self._connection.transport
            transport.resume_reading() if willing else transport.pause_reading()
