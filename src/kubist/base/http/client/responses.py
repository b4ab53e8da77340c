"""Parser for HTTP/1.1 responses of other servers: the head, and the body in pieces."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass

PIECE = 64 << 10
HEAD_LIMIT = 10 << 20
"""Maximum size in bytes of all heads of one response, as in Go's HTTP client."""
SWITCHING = 101
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


async def read_head(reader: asyncio.StreamReader, line: bytes) -> Head:
    """Head of the response, without 1xx heads. `line` is its first line. ValueError if it is not HTTP.

    Any status of three digits is accepted, as in Go's reverse proxy.
    """
    left = HEAD_LIMIT
    while True:
        first = line.split(None, 2)
        if len(first) < 2 or not first[0].startswith(b"HTTP/"):
            raise ValueError("malformed HTTP response" if first else "EOF")
        if not _IS_STATUS(first[1]):
            raise ValueError(f'malformed HTTP status code "{first[1].decode("latin-1")}"')
        head = Head(int(first[1]), [], first[0] == b"HTTP/1.1")
        while field := (line := await reader.readline()).strip():
            left -= len(line)
            if left < 0:
                raise ValueError(f"server response headers exceeded {HEAD_LIMIT} bytes; aborted")
            name, colon, value = field.partition(b":")
            if not colon or not _IS_NAME(name):
                raise ValueError(f"malformed MIME header line: {field.decode('latin-1')}")
            head.headers.append((name.decode(), _CONTROLS.sub(" ", value.strip().decode("latin-1"))))
        if not line:
            raise EOFError("unexpected EOF")
        if head.status >= 200 or head.status == SWITCHING:
            return head
        left -= len(line)
        line = await reader.readline()


async def pieces(reader: asyncio.StreamReader, head: Head) -> AsyncIterator[bytes]:
    """Body in pieces, as it arrives. IncompleteReadError if it ends too early."""
    if "chunked" in head.get("transfer-encoding").lower():
        while left := _number((await reader.readline()).split(b";")[0].strip(), 16):
            while left:
                piece = await reader.readexactly(min(left, PIECE))
                left -= len(piece)
                yield piece
            await reader.readexactly(2)
        while (await reader.readline()).strip():
            pass
        return
    length = head.get("content-length")
    if length:
        left = _number(length.encode("latin-1"), 10)
        while left:
            piece = await reader.readexactly(min(left, PIECE))
            left -= len(piece)
            yield piece
        return
    while piece := await reader.read(PIECE):
        yield piece


def _number(digits: bytes, base: int) -> int:
    """Size of a body. int() alone would also accept signs, underscores and spaces."""
    if not digits.isalnum():
        raise ValueError("malformed size of an HTTP body")
    return int(digits, base)
