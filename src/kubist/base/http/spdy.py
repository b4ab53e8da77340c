"""SPDY/3.1 server session, as Kubernetes clients use it for exec, attach and port-forward.

It is written here because no maintained Python library speaks SPDY. It behaves like the Go library that all Kubernetes
components use: the client opens streams, the server replies at once, and there is no flow control for each stream
(WINDOW_UPDATE is neither sent nor obeyed); TCP alone slows a sender down.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from enum import IntEnum

_WORDS = (
    "options,head,post,put,delete,trace,accept,accept-charset,accept-encoding,accept-language,"
    "accept-ranges,age,allow,authorization,cache-control,connection,content-base,content-encoding,"
    "content-language,content-length,content-location,content-md5,content-range,content-type,date,etag,"
    "expect,expires,from,host,if-match,if-modified-since,if-none-match,if-range,if-unmodified-since,"
    "last-modified,location,max-forwards,pragma,proxy-authenticate,proxy-authorization,range,referer,"
    "retry-after,server,te,trailer,transfer-encoding,upgrade,user-agent,vary,via,warning,"
    "www-authenticate,method,get,status,200 OK,version,HTTP/1.1,url,public,set-cookie,keep-alive,origin"
)
_REST = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized"
    "403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,"
    "text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)
DICTIONARY = (
    b"".join(struct.pack(">I", len(word)) + word.encode() for word in _WORDS.split(",")) + _REST.encode()
)
"""Initial dictionary of header compression, section 2.6.10.1 of the SPDY/3 draft."""

_VERSION = 3
_CONTROL = 0x8000
_FIN = 0x01
_HEADER = struct.Struct(">HHI")
_PIECE = 32 * 1024
"""Maximum payload in bytes of a data frame from the server."""
CONTROL_LIMIT = 64 * 1024
"""Largest control frame in bytes."""
HEADERS_LIMIT = 8 * 1024
HEADERS_COUNT = 64
"""Maximum size in bytes of a decompressed header block, and maximum number of its headers. Each open stream keeps its
headers."""
STREAM_LIMIT = 1000
"""Maximum number of open streams in a session. Further ones are refused."""

Headers = dict[str, str]


class Type(IntEnum):
    """Types of control frames."""

    SYN_STREAM = 1
    SYN_REPLY = 2
    RST_STREAM = 3
    SETTINGS = 4
    PING = 6
    GOAWAY = 7
    HEADERS = 8
    WINDOW_UPDATE = 9


class Reset(IntEnum):
    """Status codes of RST_STREAM."""

    PROTOCOL_ERROR = 1
    REFUSED_STREAM = 3
    CANCEL = 5


class SpdyError(Exception):
    """The client violated the protocol. The connection is no longer usable."""


class SpdyStream:
    """Stream that the client opened. The owner sets `on_data` and `on_end` when it accepts the stream."""

    def __init__(self, session: Session, number: int, headers: Headers) -> None:
        self._session = session
        self.number = number
        self.headers = headers
        """Headers by lower-case name."""
        self.on_data: Callable[[bytes], None] = lambda _: None
        self.on_end: Callable[[], None] = lambda: None
        self.is_open = True
        """Whether the server may still send."""
        self.ended = False
        """Whether the client has finished or reset the stream."""

    def write(self, data: bytes) -> None:
        if self.is_open:
            for start in range(0, len(data), _PIECE):
                self._session.send_data(self.number, data[start : start + _PIECE])

    def close(self) -> None:
        """Finishes the server's half."""
        if self.is_open:
            self.is_open = False
            self._session.send_data(self.number, b"", fin=True)
            self._session.forget(self)

    def reset(self) -> None:
        """Ends both halves."""
        if self.is_open or not self.ended:
            self.is_open = False
            self.end()
            self._session.send_reset(self.number, Reset.CANCEL)
            self._session.forget(self)

    def end(self) -> None:
        """Records that the client's half is finished."""
        if not self.ended:
            self.ended = True
            self.on_end()


class Session:
    """Server side of one connection. `feed` takes the client's bytes, `send` passes on the server's.

    `opened` accepts a new stream by returning True.
    """

    def __init__(self, send: Callable[[bytes], None], opened: Callable[[SpdyStream], bool]) -> None:
        self._send = send
        self._opened = opened
        self._buffer = bytearray()
        self._streams: dict[int, SpdyStream] = {}
        self._next = 1
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)
        self._deflate = zlib.compressobj(zdict=DICTIONARY)
        self._payload: tuple[int, int, int] | None = None
        """Data frame under way: stream, flags, bytes left."""
        self.gone_away = False
        """Whether one side has sent GOAWAY. New streams are ignored."""
        self.on_goaway: Callable[[], None] = lambda: None

    def feed(self, data: bytes) -> None:
        """Handles bytes of the client. SpdyError if they violate the protocol."""
        buffer = self._buffer
        buffer += data
        while buffer:
            if self._payload is not None:
                self._take_payload()
            elif len(buffer) < 8:
                return
            else:
                first, second, tail = _HEADER.unpack_from(buffer)
                flags, length = tail >> 24, tail & 0xFFFFFF
                if not first & _CONTROL:
                    del buffer[:8]
                    self._payload = ((first << 16) | second, flags, length)
                    self._take_payload()
                    continue
                if first & ~_CONTROL != _VERSION:
                    raise SpdyError(f"version {first & ~_CONTROL} of SPDY is not supported")
                if length > CONTROL_LIMIT:
                    raise SpdyError(f"a control frame of {length} bytes is too large")
                if len(buffer) < 8 + length:
                    return
                body = bytes(buffer[8 : 8 + length])
                del buffer[: 8 + length]
                self._control(second, flags, body)

    def _take_payload(self) -> None:
        """Delivers a data frame as its bytes arrive, so that a large frame is never held whole."""
        assert self._payload is not None
        number, flags, left = self._payload
        piece = bytes(self._buffer[:left])
        del self._buffer[:left]
        left -= len(piece)
        stream = self._streams.get(number)
        if stream is not None and piece and not stream.ended:
            stream.on_data(piece)
        if left:
            self._payload = (number, flags, left)
            return
        self._payload = None
        if stream is not None and flags & _FIN:
            self._finish(stream)

    def _control(self, kind: int, flags: int, body: bytes) -> None:
        if kind == Type.SYN_STREAM:
            self._open(flags, body)
        elif kind in (Type.SYN_REPLY, Type.HEADERS):
            # The block is decompressed in any case, because all blocks share one state.
            self._headers(body[4:])
            stream = self._streams.get(_number(body))
            if stream is not None and flags & _FIN:
                self._finish(stream)
        elif kind == Type.RST_STREAM:
            stream = self._streams.get(_number(body))
            if stream is not None:
                stream.is_open = False
                stream.end()
                self.forget(stream)
        elif kind == Type.PING:
            if _number(body) % 2:
                self._send(_control(Type.PING, body[:4]))
        elif kind == Type.GOAWAY:
            self.gone_away = True
            self.on_goaway()

    def _open(self, flags: int, body: bytes) -> None:
        number, headers = _number(body), self._headers(body[10:])
        if self.gone_away:
            return
        if number % 2 == 0 or number < self._next:
            self.send_reset(number, Reset.PROTOCOL_ERROR)
            return
        self._next = number + 2
        if len(self._streams) >= STREAM_LIMIT:
            self.send_reset(number, Reset.REFUSED_STREAM)
            return
        stream = SpdyStream(self, number, headers)
        self._streams[number] = stream
        if not self._opened(stream):
            stream.reset()
            return
        reply = self._deflate.compress(struct.pack(">I", 0)) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        self._send(_control(Type.SYN_REPLY, struct.pack(">I", number) + reply))
        if flags & _FIN:
            self._finish(stream)

    def _finish(self, stream: SpdyStream) -> None:
        stream.end()
        if not stream.is_open:
            self.forget(stream)

    def _headers(self, block: bytes) -> Headers:
        try:
            text = self._inflate.decompress(block, HEADERS_LIMIT)
        except zlib.error as error:
            raise SpdyError(f"a header block cannot be decompressed: {error}") from None
        if self._inflate.unconsumed_tail:
            raise SpdyError(f"a header block has more than {HEADERS_LIMIT} bytes")
        place, headers = 4, {}
        count = _number(text)
        if count > HEADERS_COUNT:
            raise SpdyError(f"a header block has more than {HEADERS_COUNT} headers")
        try:
            for _ in range(count):
                name, place = _text(text, place)
                value, place = _text(text, place)
                headers[name.lower()] = value.partition("\0")[0]
        except (struct.error, UnicodeDecodeError):
            raise SpdyError("a header block is malformed") from None
        return headers

    def send_data(self, number: int, data: bytes, *, fin: bool = False) -> None:
        self._send(struct.pack(">II", number, (_FIN << 24 if fin else 0) | len(data)) + data)

    def send_reset(self, number: int, status: Reset) -> None:
        self._send(_control(Type.RST_STREAM, struct.pack(">II", number, status)))

    def forget(self, stream: SpdyStream) -> None:
        """Drops a stream that is finished in both directions."""
        if stream.ended and not stream.is_open:
            self._streams.pop(stream.number, None)

    def close(self) -> None:
        """Ends all streams and sends GOAWAY."""
        for stream in list(self._streams.values()):
            stream.reset()
        if not self.gone_away:
            self.gone_away = True
            self._send(_control(Type.GOAWAY, struct.pack(">II", max(self._next - 2, 0), 0)))


def _control(kind: Type, body: bytes) -> bytes:
    return _HEADER.pack(_CONTROL | _VERSION, kind, len(body)) + body


def _number(body: bytes) -> int:
    """First 32-bit number of a frame's body, without the reserved bit."""
    if len(body) < 4:
        raise SpdyError("a frame is too short")
    return int.from_bytes(body[:4], "big") & 0x7FFFFFFF


def _text(block: bytes, place: int) -> tuple[str, int]:
    """Length-prefixed text, and the position after it."""
    (length,) = struct.unpack_from(">I", block, place)
    end = place + 4 + length
    if end > len(block):
        raise struct.error
    return block[place + 4 : end].decode(), end
