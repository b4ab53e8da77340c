"""Tunnel for upgraded connections (WebSocket, SPDY) to backends: copies bytes both ways, with backpressure,
until one side disconnects."""

from __future__ import annotations

import asyncio
import contextlib

from kubist.api.aggregation.relay import HIGH_WATER, PAUSE_SECONDS
from kubist.base.http.client.pool import Connection
from kubist.base.http.client.responses import PIECE
from kubist.base.http.http1.writers import Tunnel as ClientEnd
from kubist.base.http.messages import Headers, Request, Stream, StreamWriter


def wants_upgrade(request: Request) -> bool:
    named = {name.strip().lower() for name in request.headers.get("connection", "").split(",")}
    return request.http_version == "1.1" and "upgrade" in named and bool(request.headers.get("upgrade"))


class Tunnel:
    """A client connection and a backend connection, joined."""

    def __init__(self, backend: Connection) -> None:
        self._backend = backend
        self._client: StreamWriter | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._full = False

    def stream(self, headers: Headers) -> Stream:
        return Stream(101, headers, self._start, self._stopped, received=self._from_client)

    def _start(self, client: StreamWriter) -> None:
        self._client = client
        self._tasks.append(asyncio.ensure_future(self._to_client(client)))

    def _stopped(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._backend.abort()

    def _from_client(self, data: bytes) -> None:
        writer = self._backend.writer
        writer.write(data)
        if writer.transport.get_write_buffer_size() > HIGH_WATER and not self._full:
            self._full = True
            self._tasks.append(asyncio.ensure_future(self._wait_for_backend()))

    async def _wait_for_backend(self) -> None:
        assert isinstance(self._client, ClientEnd)
        self._client.listen(False)
        with contextlib.suppress(OSError):
            await self._backend.writer.drain()
        self._full = False
        self._client.listen(True)

    async def _to_client(self, client: StreamWriter) -> None:
        try:
            while piece := await self._backend.reader.read(PIECE):
                client.write(piece)
                # The writer cannot signal that it has drained, so it is polled.
                while client.buffered > HIGH_WATER and not client.closed:  # noqa: ASYNC110
                    await asyncio.sleep(PAUSE_SECONDS)
        except OSError:
            client.abort()
        client.close()
