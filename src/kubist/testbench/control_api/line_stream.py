"""Stream of JSON lines, written as fast as the client reads them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

from kubist.base.http.messages import Stream, StreamWriter

log = logging.getLogger("kubist.bench")

JSON_LINES = "application/jsonl"
AT_ONCE = 256 << 10
"""Bytes that are written before the client must have read them."""


class LineStream:
    """Writes lines to one client."""

    def __init__(self, lines: AsyncIterator[bytes]) -> None:
        self._lines = lines
        self._task: asyncio.Task[None] | None = None

    def answer(self) -> Stream:
        return Stream(200, [(b"Content-Type", JSON_LINES.encode())], self._start, self._stopped)

    def _start(self, writer: StreamWriter) -> None:
        self._task = asyncio.get_running_loop().create_task(self._write(writer))

    def _stopped(self) -> None:
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()

    async def _write(self, writer: StreamWriter) -> None:
        size = 0
        try:
            async for line in self._lines:
                writer.write(line)
                size += len(line)
                if size >= AT_ONCE:
                    await _read(writer)
                    size = 0
        except Exception:
            log.exception("a stream of lines failed")
            writer.abort()
        else:
            writer.close()


async def _read(writer: StreamWriter) -> None:
    """Waits until the client has read the written data."""
    room = asyncio.Event()
    writer.on_room = room.set
    await room.wait()
