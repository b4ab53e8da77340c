"""WebSocket (RFC 6455) for streams: handshake, outgoing messages, and frames of the client."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING

from kubist.base.http.http1.response_head import head
from kubist.base.http.http1.writers import RawWriter
from kubist.base.http.messages import Request, Response, Stream

if TYPE_CHECKING:
    from kubist.base.http.http1.connection import Http1

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_TEXT, _BINARY, _CLOSE, _PING, _PONG = 0x81, 0x82, 0x88, 0x89, 0x8A
_NORMAL, _PROTOCOL_ERROR, _TOO_BIG = 1000, 1002, 1009
_MESSAGE_LIMIT = 64 * 1024
_PIECE = 2048
"""Maximum number of bytes in a message of a byte stream, before base64."""
_RECEIVED_LIMIT = 8 * 1024 * 1024
"""Maximum size in bytes of a message that the application receives. Dropped messages have a lower limit."""


def is_upgrade(request: Request) -> bool:
    headers = request.headers
    return (
        headers.get("upgrade", "").lower() == "websocket"
        and "upgrade" in headers.get("connection", "").lower()
    )


def refusal(request: Request) -> Response | None:
    """Rejection of an invalid handshake, with the texts of golang.org/x/net/websocket."""
    if not request.headers.get("sec-websocket-key"):
        return Response(400, [], b"mismatch challenge/response")
    if request.headers.get("sec-websocket-version") != "13":
        return Response(400, [(b"Sec-WebSocket-Version", b"13")], b"missing or bad WebSocket Version")
    return None


def handshake(request: Request, stream: Stream) -> bytes | Response:
    """Head of the 101 response, or the rejection of an invalid handshake."""
    if request.method != "GET":
        return Response(405, [], b"bad method")
    if (rejected := refusal(request)) is not None:
        return rejected
    key = request.headers["sec-websocket-key"].encode()
    accept = base64.b64encode(hashlib.sha1(key + _GUID, usedforsecurity=False).digest())
    lines = [(b"Upgrade", b"websocket"), (b"Connection", b"Upgrade"), (b"Sec-WebSocket-Accept", accept)]
    if stream.subprotocol:
        lines.append((b"Sec-WebSocket-Protocol", stream.subprotocol.encode("latin-1")))
    return head(101, lines, b"\r\n")


class WebSocket(RawWriter):
    """Stream as WebSocket messages: text if the content type is JSON or the stream says so, otherwise binary. Messages
    of the client go to the application if the stream has a `message` callback."""

    __slots__ = ("_closing", "_fragmented", "_fragments", "_limit", "_opcode", "_received")

    def __init__(self, connection: Http1, stream: Stream, head: bytes) -> None:
        super().__init__(connection, stream, head)
        content_type = next((value for name, value in stream.headers if name.lower() == b"content-type"), b"")
        self._opcode = _TEXT if b"json" in content_type or stream.text_messages else _BINARY
        if stream.byte_stream:
            self._head += _frame(self._opcode, b"")
        self._received = bytearray()
        self._fragmented = 0
        self._fragments = bytearray()
        self._limit = _MESSAGE_LIMIT if stream.message is None else _RECEIVED_LIMIT
        self._closing = False

    def write(self, data: bytes) -> None:
        if self.closed or not data:
            return
        stream = self._stream
        if stream.byte_stream:
            pieces = (data[start : start + _PIECE] for start in range(0, len(data), _PIECE))
            encode = base64.b64encode if stream.text_messages else bytes
            super().write(b"".join(_frame(self._opcode, encode(piece)) for piece in pieces))
        else:
            super().write(_frame(self._opcode, data[stream.prefix :]))

    def receive(self, data: bytes) -> None:
        """Processes frames of the client: control frames are obeyed, messages are delivered or dropped."""
        buffer = self._received
        buffer += data
        while len(buffer) >= 2 and not self._connection.transport.is_closing():
            first, second = buffer[0], buffer[1]
            length, start = second & 0x7F, 6
            if length == 126:
                start = 8
            elif length == 127:
                start = 14
            opcode, final = first & 0x0F, first & 0x80
            if first & 0x70 or not second & 0x80 or opcode not in (0, 1, 2, 8, 9, 10):
                return self._fail(_PROTOCOL_ERROR)
            if opcode >= 8 and (not final or length > 125):
                return self._fail(_PROTOCOL_ERROR)
            if len(buffer) < start:
                return None
            if start > 6:
                length = int.from_bytes(buffer[2 : start - 4], "big")
            if length + len(self._fragments) > self._limit:
                return self._fail(_TOO_BIG)
            if len(buffer) < start + length:
                return None
            mask, payload = bytes(buffer[start - 4 : start]), bytes(buffer[start : start + length])
            del buffer[: start + length]
            if opcode < 8:
                if (opcode == 0) != bool(self._fragmented):
                    return self._fail(_PROTOCOL_ERROR)
                self._fragmented = 0 if final else 1
                if self._stream.message is not None and not self.closed:
                    self._deliver(_unmask(payload, mask), final=bool(final))
            else:
                self._control(opcode, _unmask(payload, mask))
        return None

    def _deliver(self, payload: bytes, *, final: bool) -> None:
        """Passes a message to the application when its last fragment is here."""
        if self._fragments or not final:
            self._fragments += payload
            payload = bytes(self._fragments) if final else b""
        if final:
            self._fragments.clear()
            assert self._stream.message is not None
            self._stream.message(payload)

    def _control(self, opcode: int, payload: bytes) -> None:
        if opcode == 8:
            if self._closing:
                self._connection.close()
            else:
                self._fail(_close_code(payload))
        elif opcode == 9 and not self._closing and self._size <= _MESSAGE_LIMIT:
            super().write(_frame(_PONG, payload))

    def _fail(self, code: int) -> None:
        """Sends a close frame with `code` and closes the connection."""
        transport = self._connection.transport
        if not self._closing:
            self._closing = True
            if self._connection.writable:
                self.flush()
            transport.write(_frame(_CLOSE, code.to_bytes(2, "big")))
        self.gone()
        self._connection.close()

    def _end(self) -> None:
        """Sends a close frame and waits at most `linger_timeout` for that of the client."""
        if not self._closing:
            self._closing = True
            connection = self._connection
            connection.transport.write(_frame(_CLOSE, _NORMAL.to_bytes(2, "big")))
            connection.deadline = connection.host.now + connection.host.limits.linger_timeout


def _close_code(payload: bytes) -> int:
    """Code for the response to a close frame: the same code if it is valid."""
    if not payload:
        return _NORMAL
    code = int.from_bytes(payload[:2], "big") if len(payload) >= 2 else 0
    return code if 1000 <= code <= 4999 and code not in (1004, 1005, 1006, 1015) else _PROTOCOL_ERROR


def _frame(opcode: int, payload: bytes) -> bytes:
    length = len(payload)
    if length < 126:
        return b"%c%c%b" % (opcode, length, payload)
    if length < 65536:
        return b"%c\x7e%b%b" % (opcode, length.to_bytes(2, "big"), payload)
    return b"%c\x7f%b%b" % (opcode, length.to_bytes(8, "big"), payload)


def _unmask(payload: bytes, mask: bytes) -> bytes:
    length = len(payload)
    keystream = (mask * (length // 4 + 1))[:length]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(keystream, "big")).to_bytes(length, "big")
