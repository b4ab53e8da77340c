"""Inbox: receiving half of an HTTP/2 connection. Splits bytes into frames, and decodes header blocks.

It checks everything that a single frame shows, and counts frames that cost the server more than the client.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from kubist.base.http.http2.frames import (
    DEFAULT_FRAME_SIZE,
    HEAD_SIZE,
    LARGEST_WINDOW,
    PREFACE,
    ConnectionFault,
    Error,
    Flag,
    Kind,
    StreamFault,
    frame,
    unpack_head,
    unpack_settings,
)
from kubist.base.http.http2.hpack import Decoder, Header, HpackError, TooLarge

if TYPE_CHECKING:
    from kubist.base.http.http2.connection import Http2

_CONTINUATIONS = 256
_FLOOD_SECONDS = 10.0
_SETTINGS = 100
"""Maximum settings of one SETTINGS frame, as in Go's HTTP/2 server."""
_TURN = 256
"""Maximum effort in one turn of the event loop: 1 for a frame, 32 for a request, 1 for 64 bytes of a header
block and 1 for 256 decoded bytes of it."""
_REQUEST_EFFORT = 32
_LONG_BLOCK = 16 * 1024
"""Longer header blocks are decoded in a thread, because Huffman decoding takes about 1 µs per byte."""


class Inbox:
    """Frame parser of a connection.

    `settled`: the client has sent the preface and SETTINGS. `in_block`: a header block is incomplete. `behind`:
    whole frames are left for the next turn, so that a client with many requests does not delay others.
    `decoding`: the next turn comes when a long header block is decoded.
    """

    __slots__ = (
        "_block", "_block_flags", "_block_size", "_block_stream", "_buffer", "_connection", "_decoder",
        "_effort", "_flood", "_flood_end", "_limits", "_undelivered", "behind", "settled",
    )  # fmt: skip

    def __init__(self, connection: Http2) -> None:
        self._connection = connection
        self._limits = limits = connection.host.limits
        self._decoder = Decoder(limits.header_bytes, limits.header_count)
        self.settled = False
        self._buffer = b""
        self._block: list[bytes] | None = None
        self._block_size = 0
        self._block_stream = 0
        self._block_flags = 0
        self._flood = 0
        self._flood_end = 0.0
        self._effort = 0
        self._undelivered: tuple[int, int, asyncio.Future[tuple[list[Header], int]]] | None = None
        self.behind = False

    @property
    def decoding(self) -> bool:
        return self._undelivered is not None

    @property
    def in_block(self) -> bool:
        return self._block is not None

    def feed(self, data: bytes) -> None:
        self._effort = 0
        self._take(self._buffer + data if self._buffer else data)

    def keep(self, data: bytes) -> None:
        """Buffers data that arrived while `behind`. Some data arrives even though reading is paused."""
        self._buffer += data

    def catch_up(self) -> None:
        """Processes the frames that the last turn left over."""
        self.behind = False
        self._effort = 0
        if self._undelivered is not None:
            flags, stream, block = self._undelivered
            self._undelivered = None
            try:
                self._deliver(flags, stream, block.result)
            except StreamFault as fault:
                self._reset(fault)
        self._take(self._buffer)

    def _take(self, data: bytes) -> None:
        position, end = 0, len(data)
        if not self.settled:
            if data[: len(PREFACE)] != PREFACE[:end]:
                raise ConnectionFault(Error.PROTOCOL_ERROR, "no preface")
            if end < len(PREFACE) + HEAD_SIZE:
                self._buffer = data
                return
            position = len(PREFACE)
            if data[position + 3] != Kind.SETTINGS:
                raise ConnectionFault(Error.PROTOCOL_ERROR, "no settings")
            self.settled = True
        while end - position >= HEAD_SIZE:
            if self._effort > _TURN:
                self.behind = True
                break
            self._effort += 1
            high, low, kind, flags, stream = unpack_head(data, position)
            length = high << 16 | low
            if length > DEFAULT_FRAME_SIZE:
                raise ConnectionFault(Error.FRAME_SIZE_ERROR, "frame too large")
            start = position + HEAD_SIZE
            if end - start < length:
                break
            position = start + length
            try:
                self._frame(kind, flags, stream & LARGEST_WINDOW, data[start:position])
            except StreamFault as fault:
                self._reset(fault)
        self._buffer = data[position:]

    def _reset(self, fault: StreamFault) -> None:
        """Resets a stream. Counted, because a client can provoke a reset of each of its requests."""
        self._connection.reset(fault.stream, fault.code)
        self.count()

    def spend(self, size: int) -> None:
        """Counts the effort for a request with headers of this size."""
        self._effort += _REQUEST_EFFORT + (size >> 8)

    def count(self) -> None:
        """Counts a frame that carries no request. More than `idle_frames` in 10 seconds end the connection."""
        now = self._connection.host.now
        if now >= self._flood_end:
            self._flood_end = now + _FLOOD_SECONDS
            self._flood = 0
        self._flood += 1
        if self._flood > self._limits.idle_frames:
            raise ConnectionFault(Error.ENHANCE_YOUR_CALM, "a flood of frames")

    def _frame(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if self._block is not None:
            if kind != Kind.CONTINUATION or stream != self._block_stream:
                raise ConnectionFault(Error.PROTOCOL_ERROR, "a header block was interrupted")
            self._continuation(self._block, flags, payload)
        elif kind == Kind.HEADERS:
            self._headers(flags, stream, payload)
        elif kind == Kind.DATA:
            content = _unpadded(payload) if flags & Flag.PADDED else payload
            end = bool(flags & Flag.END_STREAM)
            if not end and not content:
                self.count()
            self._connection.data(stream, content, len(payload), end=end)
        elif kind == Kind.WINDOW_UPDATE:
            if len(payload) != 4:
                raise ConnectionFault(Error.FRAME_SIZE_ERROR, "WINDOW_UPDATE")
            self._connection.widen(stream, int.from_bytes(payload, "big") & LARGEST_WINDOW)
        elif kind in (Kind.CONTINUATION, Kind.PUSH_PROMISE):
            raise ConnectionFault(Error.PROTOCOL_ERROR, "unexpected frame")
        else:
            self.count()
            self._rare(kind, flags, stream, payload)

    def _rare(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind in (Kind.SETTINGS, Kind.PING, Kind.GOAWAY) and stream:
            raise ConnectionFault(Error.PROTOCOL_ERROR, "not a stream's frame")
        if kind in (Kind.RST_STREAM, Kind.PRIORITY) and not stream:
            raise ConnectionFault(Error.PROTOCOL_ERROR, "a stream's frame")
        if kind == Kind.SETTINGS:
            if len(payload) % 6 or (flags & Flag.ACK and payload):
                raise ConnectionFault(Error.FRAME_SIZE_ERROR, "SETTINGS")
            if not flags & Flag.ACK:
                values = list(unpack_settings(payload))
                if len(values) > _SETTINGS or len(dict(values)) < len(values):
                    raise ConnectionFault(Error.PROTOCOL_ERROR, "too many or repeated settings")
                self._connection.settings(values)
        elif kind == Kind.PING:
            if len(payload) != 8:
                raise ConnectionFault(Error.FRAME_SIZE_ERROR, "PING")
            if not flags & Flag.ACK:
                self._connection.outbox.send(frame(Kind.PING, Flag.ACK, 0, payload))
        elif kind == Kind.RST_STREAM:
            if len(payload) != 4:
                raise ConnectionFault(Error.FRAME_SIZE_ERROR, "RST_STREAM")
            self._connection.was_reset(stream)
        elif kind == Kind.PRIORITY and len(payload) != 5:
            raise StreamFault(stream, Error.FRAME_SIZE_ERROR)

    def _headers(self, flags: int, stream: int, payload: bytes) -> None:
        if not stream & 1:
            raise ConnectionFault(Error.PROTOCOL_ERROR, "a client's streams are odd")
        if flags & Flag.PADDED:
            payload = _unpadded(payload)
        if flags & Flag.PRIORITY:
            if len(payload) < 5:
                raise ConnectionFault(Error.FRAME_SIZE_ERROR, "no room for the priority")
            if int.from_bytes(payload[:4], "big") & LARGEST_WINDOW == stream:
                raise ConnectionFault(Error.PROTOCOL_ERROR, "a stream depends on itself")
            payload = payload[5:]
        if flags & Flag.END_HEADERS:
            self._complete(flags, stream, payload)
            return
        self._block, self._block_size = [payload], len(payload)
        self._block_stream, self._block_flags = stream, flags
        self._connection.deadline = self._connection.host.now + self._limits.header_timeout

    def _continuation(self, block: list[bytes], flags: int, payload: bytes) -> None:
        block.append(payload)
        self._block_size += len(payload)
        if self._block_size > self._limits.header_bytes or len(block) > _CONTINUATIONS:
            raise ConnectionFault(Error.ENHANCE_YOUR_CALM, "headers too large")
        if flags & Flag.END_HEADERS:
            self._block = None
            self._connection.rest()
            self._complete(self._block_flags, self._block_stream, b"".join(block))

    def _complete(self, flags: int, stream: int, block: bytes) -> None:
        if len(block) <= _LONG_BLOCK:
            self._effort += len(block) >> 6
            self._deliver(flags, stream, self._decoder.decode, block)
            return
        connection = self._connection
        decoded = connection.host.loop.run_in_executor(_worker(), self._decoder.decode, block)
        self._undelivered = flags, stream, decoded
        self._effort, self.behind = _TURN + 1, True
        decoded.add_done_callback(lambda _: connection.catch_up())

    def _deliver(
        self, flags: int, stream: int, decode: Callable[..., tuple[list[Header], int]], *block: bytes
    ) -> None:
        try:
            headers, size = decode(*block)
        except TooLarge as error:
            raise ConnectionFault(Error.ENHANCE_YOUR_CALM, "headers too large") from error
        except HpackError as error:
            raise ConnectionFault(Error.COMPRESSION_ERROR, str(error)) from error
        self.spend(size)
        self._connection.headers(stream, headers, size, end=bool(flags & Flag.END_STREAM))


@functools.cache
def _worker() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="headers")


def _unpadded(payload: bytes) -> bytes:
    if not payload or payload[0] >= len(payload):
        raise ConnectionFault(Error.PROTOCOL_ERROR, "more padding than frame")
    return payload[1 : len(payload) - payload[0]]
