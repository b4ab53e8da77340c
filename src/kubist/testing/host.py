"""Resources that the clusters of a test session share: a thread, certificates, and store images of new servers."""

from __future__ import annotations

import asyncio
import dataclasses
import tempfile
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from kubist.api.settings import Settings
from kubist.server.inprocess import DEFAULTS, LoopThread, Server
from kubist.server.runtime.identity import Identity
from kubist.storage.image import Image, take_image
from kubist.testing.cluster import Cluster

if TYPE_CHECKING:
    from kubist.testing.hosted_clusters import HostedClusters


class Host:
    """Creates clusters. The first cluster of each configuration is slower; later ones take milliseconds."""

    def __init__(self) -> None:
        self._temporary = tempfile.TemporaryDirectory(prefix="kubist-")
        self._thread = LoopThread()
        self._identities = {DEFAULTS.bind_address: Identity(Path(self._temporary.name), DEFAULTS)}
        """Credentials by the server's address, which is in its certificate."""
        self._hosts: list[Cluster] = []
        self._images: dict[tuple[tuple[str, str], ...], Image] = {}

    def cluster(self, **settings: Unpack[Settings]) -> Cluster:
        """Starts a new, empty cluster. `settings` are the fields of `kubist.Config`."""
        key = tuple(sorted((name, repr(value)) for name, value in settings.items()))
        if snapshot := settings.get("snapshot"):
            key += (("modified", str(Path(snapshot).stat().st_mtime_ns if Path(snapshot).exists() else 0)),)
        if key not in self._images:
            self._images[key] = self._new_image(settings)
        cluster = Cluster(
            identity=self._identity(settings), thread=self._thread, image=self._images[key], **settings
        )
        cluster.start()
        return cluster

    def _new_image(self, settings: Settings) -> Image:
        """Image of a server after it created all its initial objects."""
        with Server(identity=self._identity(settings), thread=self._thread, **settings) as first:
            return self._thread.run(_settled(first))

    def _identity(self, settings: Settings) -> Identity:
        address = settings.get("bind_address", DEFAULTS.bind_address)
        if address not in self._identities:
            directory = Path(self._temporary.name) / f"identity-{len(self._identities)}"
            config = dataclasses.replace(DEFAULTS, bind_address=address)
            self._identities[address] = Identity(directory, config)
        return self._identities[address]

    @cached_property
    def clusters(self) -> HostedClusters:
        """Clusters on the port of one server: `kubist_host.clusters.create("team-a")`. They are quicker to create and
        take less memory than those of `cluster`."""
        host = Cluster(thread=self._thread, clusters=True)
        host.start()
        self._hosts.append(host)
        return host.clusters

    def stop(self) -> None:
        for host in self._hosts:
            host.stop()
        self._thread.close()
        self._temporary.cleanup()


async def _settled(cluster: Server) -> Image:
    """Image of the server once three checks, 10 ms apart, saw no new write."""
    store = cluster.inner.store
    revision, quiet = -1, 0
    while quiet < 3:
        await asyncio.sleep(0.01)
        now = await store.revision()
        quiet = quiet + 1 if now == revision else 0
        revision = now
    await store.compact(revision)
    cache = cluster.inner.registry.cache
    await cache.catch_up()
    for collection in cache.collections.values():
        collection.expire(revision)
    return await take_image(cache)
