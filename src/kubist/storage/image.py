"""Image: the state of a server at one moment, from which any number of servers can start.

Values and entries are immutable, so an image and the servers made from it share them. Only the indexes are copied.
"""

from __future__ import annotations

from typing import NamedTuple

from sortedcontainers import SortedDict

from kubist.storage.cache.cache import ROOT, Cache, CacheImage
from kubist.storage.memory import MemoryStore, StoreImage
from kubist.storage.store import Store
from kubist.storage.wrapper import StoreWrapper


class Image(NamedTuple):
    """State of a store and of the cache in front of it. The store may be newer."""

    store: StoreImage
    cache: CacheImage


async def take_image(cache: Cache) -> Image:
    """Image of a running server, which may go on writing."""
    await cache.catch_up()
    # No other task runs between these two, so the store is not older than the cache.
    cache_image = cache.image()
    store = innermost(cache.store)
    if isinstance(store, MemoryStore):
        return Image(store.image(), cache_image)
    scan = await store.scan(ROOT, revision=cache_image.revision)
    values = SortedDict((kv.key, kv) for kv in scan.items)
    return Image(StoreImage(cache_image.revision, cache_image.revision, values), cache_image)


def innermost(store: Store) -> Store:
    """Store with the values as they are stored, below encryption and limits."""
    while isinstance(store, StoreWrapper):
        store = store.inner
    return store
