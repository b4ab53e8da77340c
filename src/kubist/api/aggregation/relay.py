"""Streams the body of a backend's response to the client, with backpressure."""

from __future__ import annotations

import asyncio
import contextlib

from kubist.base.http.client.responses import Head, pieces
from kubist.base.http.messages import Headers, Stream, StreamWriter

HIGH_WATER = 1 << 20
"""Bytes buffered for the client above which no more is read from the backend."""
PAUSE_SECONDS = 0.02


class Relay:
    """A response body in transit from a backend to a client. Either side may disconnect."""

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
                # The writer cannot signal that it has drained, so it is polled.
                while client.buffered > HIGH_WATER and not client.closed:  # noqa: ASYNC110
                    await asyncio.sleep(PAUSE_SECONDS)
            client.close()
        except (OSError, EOFError, ValueError):
            # Aborts, because an incomplete body must not look complete.
            client.abort()
        finally:
            with contextlib.suppress(OSError):
                self._backend.close()
