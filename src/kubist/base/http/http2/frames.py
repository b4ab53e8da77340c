"""HTTP/2 frames (RFC 9113): types, flags, settings, error codes, and their encoding."""

from __future__ import annotations

from struct import Struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


class Kind:
    DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS = 0, 1, 2, 3, 4
    PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 5, 6, 7, 8, 9


class Flag:
    ACK = END_STREAM = 0x1
    END_HEADERS = 0x4
    PADDED = 0x8
    PRIORITY = 0x20


class Setting:
    ENABLE_PUSH = 2
    MAX_CONCURRENT_STREAMS = 3
    INITIAL_WINDOW_SIZE = 4
    MAX_FRAME_SIZE = 5
    MAX_HEADER_LIST_SIZE = 6


class Error:
    NO_ERROR = 0x0
    PROTOCOL_ERROR = 0x1
    INTERNAL_ERROR = 0x2
    FLOW_CONTROL_ERROR = 0x3
    STREAM_CLOSED = 0x5
    FRAME_SIZE_ERROR = 0x6
    REFUSED_STREAM = 0x7
    CANCEL = 0x8
    COMPRESSION_ERROR = 0x9
    ENHANCE_YOUR_CALM = 0xB


DEFAULT_WINDOW = 65_535
DEFAULT_FRAME_SIZE = 16_384
LARGEST_FRAME_SIZE = 2**24 - 1
LARGEST_WINDOW = 2**31 - 1

HEAD_SIZE = 9
_HEAD = Struct(">BHBBI")
_SETTING = Struct(">HI")
unpack_head = _HEAD.unpack_from
unpack_settings = _SETTING.iter_unpack


class ConnectionFault(Exception):
    """Protocol error of the client that ends the connection."""

    def __init__(self, code: int, why: str) -> None:
        super().__init__(why)
        self.code = code


class StreamFault(Exception):
    """Protocol error of the client that ends one stream."""

    def __init__(self, stream: int, code: int) -> None:
        super().__init__(stream, code)
        self.stream = stream
        self.code = code


def frame_head(kind: int, flags: int, stream: int, length: int) -> bytes:
    return _HEAD.pack(length >> 16, length & 0xFFFF, kind, flags, stream)


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return frame_head(kind, flags, stream, len(payload)) + payload


def settings(values: dict[int, int]) -> bytes:
    return frame(Kind.SETTINGS, 0, 0, b"".join(_SETTING.pack(key, value) for key, value in values.items()))


def window_update(stream: int, increment: int) -> bytes:
    return frame(Kind.WINDOW_UPDATE, 0, stream, increment.to_bytes(4, "big"))


def reset(stream: int, code: int) -> bytes:
    return frame(Kind.RST_STREAM, 0, stream, code.to_bytes(4, "big"))


def goaway(last_stream: int, code: int) -> bytes:
    return frame(Kind.GOAWAY, 0, 0, last_stream.to_bytes(4, "big") + code.to_bytes(4, "big"))
