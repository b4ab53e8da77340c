"""Exchange of metrics among the processes of one server, because a scraper reaches only one of them."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable

from kubist.api.discovery.counters import Counters
from kubist.base import eager_task

RESPONSE_SECONDS = 1.0


class Peers:
    """One process of the server. `paths` are the sockets of all processes; `number` is its own index."""

    def __init__(self, paths: list[str], number: int, own: socket.socket) -> None:
        self._paths = [path for index, path in enumerate(paths) if index != number]
        self._socket = own
        self._listener: asyncio.Server | None = None

    async def start(self, counters: Callable[[], Counters]) -> None:
        """Serves the counters of this process."""

        async def tell(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(counters().dump())
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

        self._listener = await asyncio.start_unix_server(tell, sock=self._socket)

    async def stop(self) -> None:
        if self._listener is not None:
            self._listener.close()

    async def ask(self) -> list[bytes]:
        """Counters of all other processes. A process that does not respond within RESPONSE_SECONDS is left out."""
        answers = await asyncio.gather(*map(_ask, self._paths), return_exceptions=True)
        return [answer for answer in answers if isinstance(answer, bytes)]


async def _ask(path: str) -> bytes:
    async with eager_task.timeout(RESPONSE_SECONDS):
        reader, writer = await asyncio.open_unix_connection(path)
        try:
            return await reader.read()
        finally:
            writer.close()
