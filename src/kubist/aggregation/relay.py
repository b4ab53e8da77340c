"""The body of a backend's answer, passed on piece by piece as the client takes it."""

from __future__ import annotations

import asyncio
import contextlib

from kubist.http.answers import Head, pieces
from kubist.http.messages import Headers, Stream, StreamWriter

HIGH_WATER = 1 << 20
"""With so much on its way to the client, no more is taken from the backend."""
PAUSE_SECONDS = 0.02


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
