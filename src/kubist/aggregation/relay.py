"""The answer of a backend as HTTP/1.1: its head, and its body passed on piece by piece as the client takes it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

from kubist.http.messages import Headers, Stream, StreamWriter

PIECE = 64 << 10
HIGH_WATER = 1 << 20
"""With so much on its way to the client, no more is taken from the backend."""
PAUSE_SECONDS = 0.02
SWITCHING = 101


@dataclass(slots=True)
class Head:
    status: int
    headers: list[tuple[str, str]]
    keeps: bool = False
    """Whether the backend speaks a version of HTTP in which connections are kept."""

    def get(self, name: str) -> str:
        return next((value for known, value in self.headers if known.lower() == name), "")


async def read_head(reader: asyncio.StreamReader, line: bytes) -> Head:
    """The first head that is not merely informational, of which `line` is the first line; ValueError if it is not
    HTTP."""
    while True:
        first = line.split(None, 2)
        if len(first) < 2 or not first[0].startswith(b"HTTP/"):
            raise ValueError("EOF" if not first else "malformed HTTP response")
        head = Head(int(first[1]), [], first[0] == b"HTTP/1.1")
        while (line := (await reader.readline()).strip()) != b"":
            name, _, value = line.decode("latin-1").partition(":")
            head.headers.append((name.strip(), value.strip()))
        if head.status >= 200 or head.status == SWITCHING:
            return head
        line = await reader.readline()


async def pieces(reader: asyncio.StreamReader, head: Head) -> AsyncIterator[bytes]:
    """The body as it arrives; IncompleteReadError if it ends too early."""
    if "chunked" in head.get("transfer-encoding").lower():
        while left := int((await reader.readline()).split(b";")[0] or b"-", 16):
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
        left = int(length)
        while left:
            piece = await reader.readexactly(min(left, PIECE))
            left -= len(piece)
            yield piece
        return
    while piece := await reader.read(PIECE):
        yield piece


class Relay:
    """A body under way from a backend to a client. Either may leave."""

    def __init__(self, head: Head, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._head = head
        self._reader = reader
        self._backend = writer
        self._task: asyncio.Task[None] | None = None

    def stream(self, headers: Headers) -> Stream:
        return Stream(self._head.status, headers, self._start, self._stopped)

    def _start(self, client: StreamWriter) -> None:
        self._task = asyncio.ensure_future(self._pass_on(client))

    def _stopped(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self._backend.transport.abort()

    async def _pass_on(self, client: StreamWriter) -> None:
        try:
            async for piece in pieces(self._reader, self._head):
                client.write(piece)
                # A writer does not say when it has drained: it is asked.
                while client.buffered > HIGH_WATER and not client.closed:  # noqa: ASYNC110
                    await asyncio.sleep(PAUSE_SECONDS)
            client.close()
        except (OSError, EOFError, ValueError):
            # What is incomplete must not look complete.
            client.abort()
        finally:
            with contextlib.suppress(OSError):
                self._backend.close()
