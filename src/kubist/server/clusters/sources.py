"""Content of a new cluster: the template, another cluster, a named snapshot, or a backup.

A template is the state of a server that has created all its initial objects.
"""

from __future__ import annotations

import asyncio
import tempfile
from contextvars import Context
from pathlib import Path

from kubist.api.config import Config
from kubist.model.meta import fields, status
from kubist.server.clusters import credentials, logical_server
from kubist.server.clusters.cluster import Cluster
from kubist.server.clusters.logical_server import LogicalServer
from kubist.server.clusters.spec import KIND, MEMORY, Record, Source, Spec
from kubist.storage.backup.snapshot_file import read_image
from kubist.storage.encryption.unreadable import ENCRYPTED
from kubist.storage.image import Image, take_image
from kubist.storage.memory import MemoryStore, StoreImage
from kubist.storage.store import OpenFailed
from kubist.testbench.bench import Bench
from kubist.testbench.control_api.field_types import GROUP


async def read_source(
    spec: Spec, parent: Cluster | None, templates: Templates, host: Bench, config: Config
) -> Source:
    """State that a specification requests. `parent` is the cluster that it names. Raises 422."""
    if spec.snapshot or spec.backup:
        return Source(await _file(spec, await _bench(parent, host), config))
    if parent is not None:
        server = await parent.running()
        image = await take_image(server.registry.cache)
        clock = server.bench.clock if server.bench is not None else None
        moved = (clock.now(), clock.speed) if clock is not None and clock.is_moved else None
        return Source(image.store, image.cache, clock=moved)
    image = await templates.image(spec.controllers_or_all)
    return Source(image.store, image.cache, is_template=True)


async def _bench(parent: Cluster | None, host: Bench) -> Bench:
    """Test bench with the snapshots: the named cluster's, or the host's."""
    if parent is None:
        return host
    bench = (await parent.running()).bench
    assert bench is not None
    return bench


async def _file(spec: Spec, bench: Bench, config: Config) -> StoreImage:
    """Content of a snapshot or a backup."""
    field = "snapshot" if spec.snapshot else "backup"
    if spec.backup and not Path(spec.backup).is_absolute():
        raise _invalid(field, spec.backup, "must be the absolute path of a file on the host")
    path = Path(spec.backup)
    if spec.snapshot:
        try:
            path = bench.snapshots.path_of(spec.snapshot)
        except status.APIError:
            raise unknown(field, spec.snapshot) from None
    try:
        image = await asyncio.to_thread(read_image, path)
    except OpenFailed as error:
        raise _invalid(field, spec.snapshot or spec.backup, str(error)) from None
    sealed = sum(kv.value.startswith(ENCRYPTED) for kv in image.values.values())
    if sealed and not config.encryption_provider_config:
        why = f"{sealed} values are encrypted: the host needs the --encryption-provider-config file"
        raise _invalid(field, spec.snapshot or spec.backup, why)
    return image


def _invalid(field: str, value: str, why: str) -> status.APIError:
    return status.invalid(GROUP, KIND, "", [fields.invalid(field, value, why)])


def unknown(field: str, value: str) -> status.APIError:
    """422 for a source that does not exist."""
    return status.invalid(GROUP, KIND, "", [fields.not_found(field, value)])


KEPT = 8
"""Maximum number of templates that are kept, one for each list of control loops."""
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
    """Stops a server completely, even if the task is cancelled meanwhile."""
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
