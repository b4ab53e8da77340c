"""Reader of HTTP/1.1 responses of other servers: the head, and the body in pieces.

Everything that a server sends has a limit. Data that has already arrived is read in slices of the event loop, so that
other clients and the deadline of the call have their turns.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass

from kubist.base.http.client.chunks import Chunks

PIECE = 64 << 10
CHUNKED_PIECE = 16 << 10
"""Bytes of a chunked body that are parsed at once. They may have thousands of chunks."""
HEAD_LIMIT = 1 << 20
"""Maximum bytes of all heads of one response."""
FIELD_LIMIT = 4096
"""Maximum number of headers of one response."""
INFORMATIONAL_LIMIT = 64
"""Maximum number of heads with a 1xx status before a response."""
FRAMING_LIMIT = 1 << 20
"""Maximum bytes of the framing of chunks, beyond the content, of a body that is read whole."""
SLICE = 1 << 20
"""Bytes that are read in one slice of the event loop, some milliseconds."""
FIELD_COST = 1 << 10
CHUNK_LINE_COST = 1 << 8
"""Bytes that take as long to read as one header or one line of a chunk."""
SWITCHING = 101
SHOWN = 1024
"""Maximum bytes of a malformed line that an error message shows."""
_IS_STATUS = re.compile(rb"[1-9][0-9]{2}").fullmatch
_IS_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+").fullmatch
_CONTROLS = re.compile(r"[\x00\r\n]")


@dataclass(slots=True)
class Head:
    status: int
    headers: list[tuple[str, str]]
    keeps: bool = False
    """Whether the server's HTTP version keeps connections open (HTTP/1.1)."""

    def get(self, name: str) -> str:
        return next((value for known, value in self.headers if known.lower() == name), "")


class Slices:
    """Slices of the event loop that reading one response takes."""

    def __init__(self) -> None:
        self._left = SLICE

    async def spend(self, cost: int) -> None:
        """Gives other tasks and timers a turn when the slice is used up."""
        self._left -= cost
        if self._left <= 0:
            self._left = SLICE
            await asyncio.sleep(0)


async def read_line(reader: asyncio.StreamReader) -> bytes:
    """Line of a head. Empty at the end of the connection. ValueError if it is longer than the limit of the reader."""
    try:
        return await reader.readline()
    except ValueError:
        raise _too_long() from None


def _too_long() -> ValueError:
    return ValueError(f"server response headers exceeded {HEAD_LIMIT} bytes; aborted")


async def read_head(reader: asyncio.StreamReader, line: bytes) -> Head:
    """Head of the response, without 1xx heads. `line` is its first line. ValueError if it is not HTTP.

    Any status of three digits is accepted, as in Go's reverse proxy.
    """
    slices = Slices()
    left = HEAD_LIMIT
    for _ in range(INFORMATIONAL_LIMIT + 1):
        left -= len(line)
        head = _head(line)
        while field := (line := await read_line(reader)).strip():
            left -= len(line)
            if left < 0:
                raise _too_long()
            if len(head.headers) == FIELD_LIMIT:
                raise ValueError(f"the response has more than {FIELD_LIMIT} headers")
            head.headers.append(_field(field))
            await slices.spend(len(line) + FIELD_COST)
        if left < 0:
            raise _too_long()
        if not line:
            raise EOFError("unexpected EOF")
        if head.status >= 200 or head.status == SWITCHING:
            return head
        line = await read_line(reader)
    raise ValueError("too many 1xx informational responses")


def _head(line: bytes) -> Head:
    """Head with the status of a status line."""
    first = line.split(None, 2)
    if len(first) < 2 or not first[0].startswith(b"HTTP/"):
        raise ValueError("malformed HTTP response" if first else "EOF")
    if not _IS_STATUS(first[1]):
        raise ValueError(f'malformed HTTP status code "{first[1][:SHOWN].decode("latin-1")}"')
    return Head(int(first[1]), [], first[0] == b"HTTP/1.1")


def _field(line: bytes) -> tuple[str, str]:
    name, colon, value = line.partition(b":")
    if not colon or not _IS_NAME(name):
        raise ValueError(f"malformed MIME header line: {line[:SHOWN].decode('latin-1')}")
    return name.decode(), _CONTROLS.sub(" ", value.strip().decode("latin-1"))


async def whole(reader: asyncio.StreamReader, head: Head, limit: int) -> bytes:
    """Body in one piece. ValueError if it has more than `limit` bytes."""
    body = bytearray()
    async for piece in pieces(reader, head, FRAMING_LIMIT):
        body += piece
        if len(body) > limit:
            raise ValueError(f"the response has more than {limit} bytes")
    return bytes(body)


async def pieces(reader: asyncio.StreamReader, head: Head, framing_limit: int = 0) -> AsyncIterator[bytes]:
    """Body in pieces, as it arrives. EOFError if it ends too early. `Chunks` describes `framing_limit`."""
    slices = Slices()
    if "chunked" in head.get("transfer-encoding").lower():
        chunks = Chunks(framing_limit)
        while not chunks.done:
            data = await _more(reader, CHUNKED_PIECE)
            content, rest, lines = chunks.feed(data)
            if rest:
                # The server sent more than the response, so the next response would begin with it.
                head.keeps = False
            if content:
                yield bytes(content)
            await slices.spend(len(data) + CHUNK_LINE_COST * lines)
        return
    length = head.get("content-length")
    if length:
        left = _length(length.encode("latin-1"))
        while left:
            piece = await _more(reader, min(left, PIECE))
            left -= len(piece)
            yield piece
            await slices.spend(len(piece))
        return
    while piece := await reader.read(PIECE):
        yield piece
        await slices.spend(len(piece))


async def _more(reader: asyncio.StreamReader, size: int) -> bytes:
    data = await reader.read(size)
    if not data:
        raise EOFError("unexpected EOF")
    return data


def _length(digits: bytes) -> int:
    """Size of a body. int() alone would also accept signs, underscores and spaces."""
    if not digits.isdigit():
        raise ValueError("malformed size of an HTTP body")
    return int(digits)
