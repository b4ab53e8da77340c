"""SPDY/3.1 client for tests, on a socket that is already upgraded."""

from __future__ import annotations

import struct
import zlib
from typing import Protocol

from kubist.base.http.spdy import DICTIONARY

SYN_STREAM, SYN_REPLY, RST_STREAM, PING, GOAWAY, HEADERS = 1, 2, 3, 6, 7, 8


class Wire(Protocol):
    """Transport of the session: a socket, or a WebSocket."""

    def sendall(self, data: bytes, /) -> None: ...

    def recv(self, size: int, /) -> bytes: ...


class SpdyClient:
    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self._next = 1
        self._deflate = zlib.compressobj(zdict=DICTIONARY)
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)
        self._rest = b""
        self.data: dict[int, bytes] = {}
        """Received bytes by stream."""
        self.finished: set[int] = set()
        self.reset: dict[int, int] = {}
        """Status of RST_STREAM by stream."""
        self.replied: set[int] = set()
        self.pings: list[int] = []
        self.gone_away = False
        self.closed = False

    def block(self, headers: dict[str, str]) -> bytes:
        """Compressed header block."""
        parts = [struct.pack(">I", len(headers))]
        for name, value in headers.items():
            for text in (name.encode(), value.encode()):
                parts += [struct.pack(">I", len(text)), text]
        return self._deflate.compress(b"".join(parts)) + self._deflate.flush(zlib.Z_SYNC_FLUSH)

    def control(self, kind: int, body: bytes, flags: int = 0, version: int = 3) -> None:
        self.wire.sendall(struct.pack(">HHI", 0x8000 | version, kind, flags << 24 | len(body)) + body)

    def open(self, **headers: str) -> int:
        """Opens a stream. Returns its number."""
        return self.open_as(headers)

    def open_as(self, headers: dict[str, str], *, fin: bool = False, number: int = 0) -> int:
        number = number or self._next
        self._next = number + 2
        self.control(SYN_STREAM, struct.pack(">IIH", number, 0, 0) + self.block(headers), int(fin))
        return number

    def send(self, stream: int, data: bytes, fin: bool = False) -> None:
        self.wire.sendall(struct.pack(">II", stream, int(fin) << 24 | len(data)) + data)

    def read_frame(self) -> bool:
        """Handles one frame of the server. False at the end of the connection."""
        while len(self._rest) < 8 or len(self._rest) < 8 + self._length():
            piece = self.wire.recv(65536)
            if not piece:
                self.closed = True
                return False
            self._rest += piece
        first, second = struct.unpack(">HH", self._rest[:4])
        flags, length = self._rest[4], self._length()
        body, self._rest = self._rest[8 : 8 + length], self._rest[8 + length :]
        if first & 0x8000:
            self._control(second, body)
        else:
            stream = first << 16 | second
            self.data[stream] = self.data.get(stream, b"") + body
            if flags & 1:
                self.finished.add(stream)
        return True

    def _length(self) -> int:
        return int.from_bytes(self._rest[5:8], "big")

    def _control(self, kind: int, body: bytes) -> None:
        number = int.from_bytes(body[:4], "big")
        if kind == SYN_REPLY:
            assert self._inflate.decompress(body[4:]) == b"\0\0\0\0"
            self.replied.add(number)
        elif kind == RST_STREAM:
            self.reset[number] = int.from_bytes(body[4:8], "big")
        elif kind == PING:
            self.pings.append(number)
        elif kind == GOAWAY:
            self.gone_away = True

    def read_until_closed(self) -> None:
        while not self.gone_away and self.read_frame():
            pass
