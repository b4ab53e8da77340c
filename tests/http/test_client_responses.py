"""Responses of other servers: limits on everything, and slices of the event loop."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from kubist.base import eager_task
from kubist.base.http.client.chunks import EXCESS_LIMIT, LINE_LIMIT, TRAILER_LIMIT, Chunks
from kubist.base.http.client.responses import (
    CHUNK_LINE_COST,
    CHUNKED_PIECE,
    FIELD_LIMIT,
    FRAMING_LIMIT,
    HEAD_LIMIT,
    INFORMATIONAL_LIMIT,
    SLICE,
    Head,
    pieces,
    read_head,
    read_line,
    whole,
)

CHUNKED = [("Transfer-Encoding", "chunked")]
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\n"
Result = TypeVar("Result")


def received(data: bytes) -> asyncio.StreamReader:
    """Reader of a connection on which everything has already arrived."""
    reader = asyncio.StreamReader(limit=HEAD_LIMIT)
    reader.feed_data(data)
    reader.feed_eof()
    return reader


def read(data: bytes, what: Callable[[asyncio.StreamReader], Awaitable[Result]]) -> tuple[Result, int]:
    """Result of a function on a full buffer, and the turns that other tasks had meanwhile."""

    async def main() -> tuple[Result, int]:
        turns = itertools.count()

        async def others() -> None:
            while True:
                next(turns)
                await asyncio.sleep(0)

        task = asyncio.create_task(others())
        try:
            return await what(received(data)), next(turns)
        finally:
            task.cancel()

    return asyncio.run(main())


async def head_of(reader: asyncio.StreamReader) -> Head:
    return await read_head(reader, await read_line(reader))


async def streamed(reader: asyncio.StreamReader) -> int:
    return sum([len(piece) async for piece in pieces(reader, Head(200, CHUNKED))])


def body_of(data: bytes, headers: list[tuple[str, str]] = CHUNKED) -> bytes:
    return read(data, lambda reader: whole(reader, Head(200, headers), 1 << 24))[0]


def test_chunks_of_one_byte_are_read_in_slices() -> None:
    number = 100_000
    length, turns = read(b"1\r\nx\r\n" * number + b"0\r\n\r\n", streamed)
    assert length == number
    chunks_of_a_slice = SLICE / (2 * CHUNK_LINE_COST) + CHUNKED_PIECE / len(b"1\r\nx\r\n")
    assert turns >= number / chunks_of_a_slice


@pytest.mark.parametrize("headers", [CHUNKED, [("Content-Length", str(12 << 20))], []])
def test_large_bodies_are_read_in_slices(headers: list[tuple[str, str]]) -> None:
    content = b"x" * (12 << 20)
    data = b"%x\r\n%b\r\n0\r\n\r\n" % (len(content), content) if headers == CHUNKED else content
    body, turns = read(data, lambda reader: whole(reader, Head(200, headers), 1 << 24))
    assert body == content and turns >= len(content) // SLICE - 1


def test_heads_are_read_in_slices() -> None:
    head, turns = read(OK + b"A: b\r\n" * FIELD_LIMIT + b"\r\n", head_of)
    assert len(head.headers) == FIELD_LIMIT and turns >= 3


def test_deadline_holds_while_everything_has_arrived() -> None:
    async def limited(reader: asyncio.StreamReader) -> int:
        async with eager_task.timeout(0):
            return await streamed(reader)

    with pytest.raises(TimeoutError):
        read(b"1\r\nx\r\n" * 100_000, limited)


def test_framing_of_a_whole_body_is_limited() -> None:
    chunk = b"1\r\nx\r\n"
    fitting = FRAMING_LIMIT // (len(chunk) - 2) - 2
    assert len(body_of(chunk * fitting + b"0\r\n\r\n")) == fitting
    with pytest.raises(ValueError, match="too much non-data"):
        body_of(chunk * 2 * fitting + b"0\r\n\r\n")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"1;" + b"e" * LINE_LIMIT + b"\r\nx\r\n", "header line too long"),
        (b"1" * LINE_LIMIT, "header line too long"),
        (b"1;" + b"e" * 1000 + b"\r\nx\r\n", "too much non-data"),
        (b"0\r\n" + b"A: b\r\n" * TRAILER_LIMIT, "suspiciously long trailer"),
        (b"0\r\n" + b"A" * TRAILER_LIMIT, "header line too long"),
        (b"0" * 17 + b"\r\n", "chunk length too large"),
        (b"\r\n", "empty hex number"),
        (b"-1\r\n", "invalid byte in chunk length"),
        (b"1_0\r\n", "invalid byte in chunk length"),
        (b"g\r\n", "invalid byte in chunk length"),
        (b"1\r\nxyz", "header line too long|malformed chunked encoding|unexpected EOF"),
        (b"1\r\nxy\r\n", "malformed chunked encoding"),
        (b"5\r\nx", "unexpected EOF"),
        (b"1\r\nx\r\n", "unexpected EOF"),
        (b"0\r\nA: b\r\n", "unexpected EOF"),
    ],
)
def test_malformed_chunks_are_rejected(data: bytes, why: str) -> None:
    repeated = data * (2 * EXCESS_LIMIT // len(data)) if b"e" in data and len(data) < LINE_LIMIT else data
    with pytest.raises((ValueError, EOFError), match=why):
        body_of(repeated)


def test_chunks_are_the_same_however_they_arrive() -> None:
    data = b"3;a=b\r\nabc\r\n00A \r\n0123456789\r\n0\r\nTrailer: x\r\n\r\nrest"
    for size in range(1, len(data) + 1):
        chunks, content, rest = Chunks(), b"", b""
        for start in range(0, len(data), size):
            piece = data[start : start + size]
            if chunks.done:
                rest += piece
                continue
            more, rest, _ = chunks.feed(piece)
            content += more
        assert (content, rest) == (b"abc0123456789", b"rest") and chunks.done


def test_connection_with_more_than_the_response_is_not_kept() -> None:
    async def keeps(reader: asyncio.StreamReader) -> bool:
        head = Head(200, CHUNKED, keeps=True)
        await whole(reader, head, 100)
        return head.keeps

    assert read(b"1\r\nx\r\n0\r\n\r\n", keeps)[0]
    assert not read(b"1\r\nx\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n", keeps)[0]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (CONTINUE * (INFORMATIONAL_LIMIT + 1), "too many 1xx informational responses"),
        (OK + b"A: b\r\n" * (FIELD_LIMIT + 1) + b"\r\n", f"more than {FIELD_LIMIT} headers"),
        (OK + b"A: %b\r\n" % (b"b" * 9000) * 200, "headers exceeded"),
        (OK + b"A: " + b"b" * 2 * HEAD_LIMIT, "headers exceeded"),
        (b"HTTP/1.1 100 " + b"b" * 2 * HEAD_LIMIT, "headers exceeded"),
        ((b"HTTP/1.1 100 " + b"b" * (HEAD_LIMIT // 2) + b"\r\n\r\n") * 3, "headers exceeded"),
        (OK + b"A: b\r\n", "unexpected EOF"),
        (OK + b"no header\r\n", "malformed MIME header line: no header"),
    ],
)
def test_heads_are_limited(data: bytes, why: str) -> None:
    with pytest.raises((ValueError, EOFError), match=why):
        read(data, head_of)


def test_informational_heads_are_skipped() -> None:
    head, _ = read(CONTINUE * INFORMATIONAL_LIMIT + OK + b"A: b\r\n\r\n", head_of)
    assert (head.status, head.headers) == (200, [("A", "b")])


@pytest.mark.parametrize("length", ["-5", "+1", "1_0", "ten", " "])
def test_malformed_length_is_rejected(length: str) -> None:
    with pytest.raises(ValueError, match="malformed size"):
        body_of(b"0123456789", [("Content-Length", length)])
