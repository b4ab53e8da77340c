"""Template of new clusters: the state of a server that has created all its initial objects."""

from __future__ import annotations

import asyncio
import tempfile
from contextvars import Context
from pathlib import Path

from kubist.api.config import Config
from kubist.model.meta import status
from kubist.server.clusters import credentials, logical_server
from kubist.server.clusters.logical_server import LogicalServer
from kubist.server.clusters.spec import MEMORY, Record
from kubist.storage.image import Image, take_image
from kubist.storage.memory import MemoryStore

KEPT = 8
"""Number of templates that are kept, one for each list of control loops."""
QUIET = 3
PAUSE = 0.01


class Templates:
    """States of new clusters, made on first use."""

    def __init__(self, config: Config, port: int) -> None:
        self._config = config
        self._port = port
        self._images: dict[tuple[str, ...], asyncio.Task[Image]] = {}

    async def image(self, controllers: tuple[str, ...]) -> Image:
        """State of a new cluster with these control loops."""
        making = self._images.get(controllers)
        if making is None or (making.done() and (making.cancelled() or making.exception() is not None)):
            while len(self._images) >= KEPT:
                del self._images[next(iter(self._images))]
            making = asyncio.create_task(self._make(controllers), context=Context())
            self._images[controllers] = making
        try:
            return await asyncio.shield(making)
        except asyncio.CancelledError:
            if making.cancelled():
                raise status.unavailable("the host stops") from None
            raise

    async def _make(self, controllers: tuple[str, ...]) -> Image:
        record = Record("template", "", 0.0, MEMORY, controllers=controllers)
        with tempfile.TemporaryDirectory(prefix="kubist-") as directory:
            credentials.make(Path(directory))
            settings = credentials.settings(Path(directory))
            config = logical_server.configuration(self._config, self._port, record, settings)
            server = LogicalServer(config, MemoryStore())
            await server.start_behind(self._port)
            try:
                return await _settled(server)
            finally:
                await _stop(server)

    async def close(self) -> None:
        """Waits until the servers of unfinished templates are stopped."""
        for making in self._images.values():
            making.cancel()
        await asyncio.gather(*self._images.values(), return_exceptions=True)


async def _stop(server: LogicalServer) -> None:
    """Stops a server to the end, also if the task is cancelled meanwhile."""
    stopping = asyncio.ensure_future(server.stop(0.0))
    try:
        await asyncio.shield(stopping)
    except asyncio.CancelledError:
        await stopping
        raise


async def _settled(server: LogicalServer) -> Image:
    """State of a server once `QUIET` checks in a row saw no new write."""
    revision, quiet = -1, 0
    while quiet < QUIET:
        await asyncio.sleep(PAUSE)
        now = await server.store.revision()
        quiet = quiet + 1 if now == revision else 0
        revision = now
    await server.registry.cache.expire()
    return await take_image(server.registry.cache)
