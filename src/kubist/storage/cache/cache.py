"""Watch cache: every collection in memory as bytes, with a window of recent changes. Serves gets, lists and
watches.

One watch of the whole store updates all collections in revision order. The cache is therefore always the state
of the store at `Cache.revision`. A collection is loaded when it is first requested.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import NamedTuple

from kubist.storage.cache.collection import Collection, CollectionImage, Follower, Subscriber
from kubist.storage.cache.entry import Change, Entry, StoredKind
from kubist.storage.store import Compacted, Event, KeyValue, Store, Unavailable

__all__ = [
    "ROOT",
    "Cache",
    "CacheImage",
    "Change",
    "Collection",
    "Entry",
    "Follower",
    "StoredKind",
    "Subscriber",
]

log = logging.getLogger("kubist.storage")

ROOT = "/registry/"
EXPIRY_KEYS = ROOT + "kubist.io/expiry/"
"""Prefix of the key that `Cache.expire` writes and deletes again. It belongs to no collection."""
WINDOW_CHANGES = 10_000
WINDOW_BYTES = 16 << 20
"""Limits of the change window of one collection, in changes and in bytes. Older history is read from the store."""


class CacheImage(NamedTuple):
    """State of a cache at a revision: its loaded collections by key prefix."""

    revision: int
    collections: dict[str, CollectionImage]


class Cache:
    """All collections of a store, kept up to date by one watch of the store."""

    def __init__(
        self, store: Store, *, window_changes: int = WINDOW_CHANGES, window_bytes: int = WINDOW_BYTES
    ) -> None:
        self.store = store
        self.window_changes = window_changes
        self.window_bytes = window_bytes
        self.revision = 0
        self.loaded = 0
        """Number of keys read from the store, for the progress display."""
        self.collections: dict[str, Collection] = {}
        self.followers: set[Follower] = set()
        self.resets = 0
        """Number of full reloads because the store had compacted changes that the cache had not seen."""
        self.on_reset: Callable[[], None] = lambda: None
        """Called on such a reload before the new state is in place, because open watches must end."""
        self.problem = ""
        """Last error of the watch of the store. Empty while the watch works."""
        self.starts_from: CacheImage | None = None
        """Image that replaces the first scan of the store. None after the first change."""
        self._feed: asyncio.Task[None] | None = None
        self._waiting: dict[asyncio.Future[bool], int] = {}

    async def start(self, kinds: Iterable[StoredKind] = ()) -> None:
        """Loads these kinds, with one scan or from an image, then watches the store."""
        if self.starts_from is not None:
            self.revision = self.starts_from.revision
        for kind in kinds:
            self.collection(kind)
        if self.starts_from is None:
            await self._load()
        live = asyncio.Event()
        self._feed = asyncio.ensure_future(self._follow(live))
        await live.wait()
        for collection in list(self.collections.values()):
            await collection.ready()

    def image(self) -> CacheImage:
        """Copy of the state. It shares all entries."""
        loaded = {prefix: each.image() for prefix, each in self.collections.items() if each.loaded}
        return CacheImage(self.revision, loaded)

    async def reload_unreadable(self) -> None:
        """Reloads all collections if any value was unreadable, because a new encryption configuration may
        decrypt it."""
        if any(collection.unreadable for collection in self.collections.values()):
            await self.stop()
            self._feed = asyncio.ensure_future(self._follow(asyncio.Event(), lost=True))

    async def _load(self) -> None:
        """Loads all known collections with one scan of the store. Keys of unknown collections are skipped."""
        entries: dict[Collection, list[tuple[str, Entry]]] = {
            collection: [] for collection in self.collections.values()
        }
        for collection in entries:
            collection.read_anew()
        start, revision = "", 0
        while True:
            page = await self.store.scan(ROOT, start=start, limit=2000, revision=revision)
            revision = page.revision
            self.loaded += len(page.items)
            # The scan is in key order, so the keys of one collection are adjacent.
            for owner, kvs in groupby(page.items, self._owners()):
                if owner is not None and owner in entries:
                    entries[owner] += owner.read(kvs)
            if not page.more:
                break
            start = page.items[-1].key + "\0"
            await asyncio.sleep(0)
        if self._feed is not None:
            self.resets += 1
            self.on_reset()
        for collection, items in entries.items():
            collection.fill(items, revision)
        self._reached(revision)

    async def stop(self) -> None:
        if self._feed is not None:
            self._feed.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._feed

    def collection(self, kind: StoredKind) -> Collection:
        collection = self.collections.get(kind.prefix)
        if collection is None:
            collection = self.collections[kind.prefix] = Collection(self, kind)
            image = self.starts_from
            if image is not None and kind.prefix in image.collections:
                collection.start_from(image.collections[kind.prefix], image.revision)
        return collection

    def forget(self, prefix: str) -> None:
        self.collections.pop(prefix, None)

    async def _follow(self, live: asyncio.Event, *, lost: bool = False) -> None:
        delay = 0.05
        while True:
            try:
                if lost:
                    await self._load()
                    lost = False
                async for batch in self.store.watch(ROOT, self.revision):
                    delay = 0.05
                    if self.problem:
                        log.info("watching the store again from revision %d", self.revision)
                        self.problem = ""
                    if batch.events:
                        self._apply(batch.events)
                    self._reached(batch.revision)
                    live.set()
            except Compacted:
                log.warning(
                    "reloading all objects: the store has compacted changes after revision %d", self.revision
                )
                lost = True
            except Unavailable as error:
                if not self.problem:
                    log.error("cannot watch the store: %s", error)
                self.problem = str(error)
                await asyncio.sleep(delay)
                delay = min(delay * 2, 2.0)

    def _apply(self, events: tuple[Event, ...]) -> None:
        owner: Collection | None = None
        run: list[Event] = []
        for event in events:
            if owner is None or not event.key.startswith(owner.kind.prefix):
                if owner is not None:
                    owner.apply(run)
                owner, run = self._owner(event.key, self.collections), []
            run.append(event)
        if owner is not None:
            owner.apply(run)

    def _owners(self) -> Callable[[KeyValue], Collection | None]:
        """Function that finds the collection of a key. It is fast if the key is in the same collection as the
        previous key."""
        last: Collection | None = None
        prefix = ""

        def owner(kv: KeyValue) -> Collection | None:
            nonlocal last, prefix
            if last is None or not kv.key.startswith(prefix):
                last = self._owner(kv.key, self.collections)
                prefix = last.kind.prefix if last is not None else ""
            return last

        return owner

    @staticmethod
    def _owner(key: str, collections: dict[str, Collection]) -> Collection | None:
        """Collection of a key: `/registry/<resource>/…`, or with one more path segment (`services/specs`, API
        groups)."""
        end = key.find("/", len(ROOT)) + 1
        collection = collections.get(key[:end])
        if collection is None:
            collection = collections.get(key[: key.find("/", end) + 1])
        return collection

    def _reached(self, revision: int) -> None:
        if revision <= self.revision:
            return
        self.revision = revision
        self.starts_from = None
        for future in [future for future, target in self._waiting.items() if target <= revision]:
            _settle(future, True)

    async def wait(self, revision: int, seconds: float = 3.0) -> bool:
        """Waits until the cache has reached a revision. False after `seconds` without reaching it."""
        if self.revision >= revision:
            return True
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bool] = loop.create_future()
        timer = loop.call_later(seconds, _settle, future, False)
        self._waiting[future] = revision
        try:
            return await future
        finally:
            timer.cancel()
            del self._waiting[future]

    async def expire(self) -> int:
        """Compacts the whole history, so that every resource version handed out so far is too old. Returns the
        oldest one that still exists."""
        # A new revision, because a client at the newest one would miss nothing.
        key = f"{EXPIRY_KEYS}{uuid.uuid4()}"
        revision = await self.store.delete(key, await self.store.create(key, b"{}"))
        await self.reach(revision)
        await self.store.compact(revision)
        for collection in self.collections.values():
            collection.expire(revision)
        return revision

    async def catch_up(self) -> None:
        """Waits until the cache has reached the current revision of the store, as a consistent read requires."""
        await self.reach(await self.store.revision())

    async def reach(self, target: int) -> None:
        """Waits until the cache has reached `target`. Raises `Unavailable` after 3 seconds."""
        if self.revision < target and not await self.wait(target):
            raise Unavailable("the cache did not catch up with the store in time")


def _settle(future: asyncio.Future[bool], result: bool) -> None:
    if not future.done():
        future.set_result(result)
