"""Bodies in pieces of a size that suits the transport: neither thousands of tiny writes nor one huge write."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate

WINDOW = 256 * 1024
_SMALL = 512

Pieces = list[bytes | bytearray]
"""Pieces of a body, as received."""


def add(body: Pieces, piece: bytes) -> None:
    """Appends a piece. Small pieces are joined, because a separate object costs about 50 bytes more."""
    if len(piece) >= _SMALL:
        body.append(piece)
    elif body and isinstance(body[-1], bytearray):
        body[-1] += piece
    else:
        body.append(bytearray(piece))


def joined(body: Pieces) -> bytes:
    return bytes(body[0]) if len(body) == 1 else b"".join(body)


def size(chunks: list[bytes]) -> int:
    return sum(map(len, chunks))


def windows(head: bytes, body: bytes | list[bytes], window: int = WINDOW) -> Iterator[bytes]:
    """`head` and `body` in pieces of about `window` bytes. Only small chunks are copied."""
    chunks = [head, body] if isinstance(body, bytes) else [head, *body]
    ends = list(accumulate(map(len, chunks)))
    start = sent = 0
    while start < len(chunks):
        stop = bisect_right(ends, sent + window, start)
        if stop > start:
            if piece := b"".join(chunks[start:stop]):
                yield piece
        else:
            chunk, stop = chunks[start], start + 1
            for offset in range(0, len(chunk), window):
                yield chunk[offset : offset + window]
        start, sent = stop, ends[stop - 1]
