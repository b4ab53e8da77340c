"""Collection: all objects of one kind in memory, with a window of recent changes and label indexes.

The cache that owns the collection applies the changes of the store to it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from sortedcontainers import SortedDict

from kubist.storage.cache.entry import Change, Entry, StoredKind
from kubist.storage.cache.label_index import LabelIndexes
from kubist.storage.cache.snapshot_at import Past
from kubist.storage.encryption.unreadable import reason
from kubist.storage.store import Compacted, Event, KeyValue

if TYPE_CHECKING:
    from kubist.storage.cache.cache import Cache

log = logging.getLogger("kubist.storage")

HISTORY_WINDOWS = 4
"""Limit of the history that a watch may read from the store, in multiples of the window size. Beyond it a new
list is faster."""

PASTS = 4
"""Maximum number of earlier states of a collection that are cached for paginated lists."""

Subscriber = Callable[[list[Change]], None]


class Follower(Protocol):
    """Receives the content of every collection when it is loaded, then all its changes."""

    def filled(self, collection: Collection) -> None: ...

    def changed(self, collection: Collection, changes: list[Change]) -> None: ...


class Lost(NamedTuple):
    """Key whose value is unreadable: the reason, and the last version that was readable."""

    reason: str
    last: Entry | None


class CollectionImage(NamedTuple):
    """State of a collection, from which the collection of another cache can start. It shares all entries."""

    entries: SortedDict[str, Entry]
    unreadable: dict[str, Lost]
    window: deque[Change]
    window_start: int
    window_bytes: int


class Collection:
    """All objects of one kind."""

    def __init__(self, cache: Cache, kind: StoredKind) -> None:
        self.cache = cache
        self.kind = kind
        self.entries: SortedDict[str, Entry] = SortedDict()
        self.loaded = False
        self.unreadable: dict[str, Lost] = {}
        """Keys whose value is not a valid object. They do not block other objects and do not count as deleted."""
        self._unread: dict[str, Lost] = {}
        """`unreadable` as it was before the reload that is under way."""
        self.window: deque[Change] = deque()
        self.window_start = 0
        """`window` holds all changes after this revision."""
        self._window_bytes = 0
        self._loading: asyncio.Task[None] | None = None
        self._delayed: list[Event] = []
        self._subscribers: dict[object, Subscriber] = {}
        self._indexes = LabelIndexes()
        self._pasts: dict[int, Past] = {}

    async def ready(self) -> None:
        if self.loaded:
            return
        if self._loading is None:
            self._loading = asyncio.ensure_future(self._load())
            self._loading.add_done_callback(self._settled)
        await asyncio.shield(self._loading)

    def _settled(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() or task.exception() is not None:
            self._loading = None

    async def _load(self) -> None:
        cache = self.cache
        while not self.loaded:
            self._delayed.clear()
            self.read_anew()
            resets = cache.resets
            try:
                items, revision = await self._scan()
            except Compacted:
                continue
            # The cache may be older than the scan. The collection joins the others when the cache has caught
            # up.
            await cache.catch_up()
            if resets == cache.resets:
                self.fill(items, revision)
                events, self._delayed = self._delayed, []
                self.apply([event for event in events if event.revision > revision])

    async def _scan(self) -> tuple[list[tuple[str, Entry]], int]:
        items: list[tuple[str, Entry]] = []
        start, revision = "", 0
        while True:
            page = await self.cache.store.scan(self.kind.prefix, start=start, limit=2000, revision=revision)
            revision = page.revision
            items += self.read(page.items)
            if not page.more:
                return items, revision
            start = page.items[-1].key + "\0"
            await asyncio.sleep(0)

    def read_anew(self) -> None:
        """Starts a reload: clears `unreadable` and keeps the old content until `fill`."""
        self._unread, self.unreadable = self.unreadable, {}

    def read(self, kvs: Iterable[KeyValue]) -> Iterator[tuple[str, Entry]]:
        for kv in kvs:
            entry = self._entry(kv)
            if entry is not None:
                yield kv.key, entry

    def _entry(self, kv: KeyValue) -> Entry | None:
        """Entry of a stored value. An invalid value is recorded in `unreadable` and gives None."""
        try:
            return self.kind.entry(kv.key, kv.value, kv.mod_revision)
        except Exception as error:
            why = reason(kv.value, error)
            log.error("%s cannot be read: %s", kv.key, why)
            self.unreadable[kv.key] = Lost(why, self.entries.get(kv.key) or _last(self._unread.get(kv.key)))
            return None

    def fill(self, items: Mapping[str, Entry] | list[tuple[str, Entry]], revision: int) -> None:
        """Replaces the content by the state at `revision` and clears the window. Subscribers of a loaded
        collection receive the difference."""
        before, known = self.entries, self.loaded
        for key, lost in self._unread.items():
            if lost.last is not None:
                before[key] = lost.last
        for key in self.unreadable:
            before.pop(key, None)
        self._unread = {}
        if items or before:
            self.entries = SortedDict(items)
        self.window.clear()
        self._window_bytes = 0
        self.window_start = revision
        self._indexes.clear()
        self._pasts.clear()
        self.loaded = True
        if known:
            self._tell(_difference(before, self.entries, revision))
        else:
            for follower in list(self.cache.followers):
                follower.filled(self)

    def image(self) -> CollectionImage:
        """Copy of the state."""
        return CollectionImage(
            SortedDict(self.entries) if self.entries else SortedDict(),
            self.unreadable.copy(),
            self.window.copy(),
            self.window_start,
            self._window_bytes,
        )

    def start_from(self, image: CollectionImage, revision: int) -> None:
        """Loads the collection from an image that another cache took at `revision`."""
        kind = self.kind
        if kind.shares_entries:
            self.fill(image.entries, image.window_start)
            self.window, self._window_bytes = image.window.copy(), image.window_bytes
        else:
            self.fill({key: kind.adopt(entry) for key, entry in image.entries.items()}, revision)
        self.unreadable = image.unreadable.copy()

    def apply(self, events: list[Event]) -> None:
        """Applies these changes in order and notifies the subscribers."""
        if not self.loaded:
            if self._loading is not None:
                self._delayed += events
            return
        self._tell([change for event in events if (change := self._apply(event)) is not None])

    def _tell(self, changes: list[Change]) -> None:
        followers = self.cache.followers
        if not changes or not (self._subscribers or followers):
            return
        listeners: list[Subscriber] = [
            *self._subscribers.values(),
            *(partial(follower.changed, self) for follower in followers),
        ]
        for tell in listeners:
            try:
                tell(changes)
            except Exception:  # a failing listener must not block the others
                log.exception("a subscriber failed on a change below %s", self.kind.prefix)

    def _apply(self, event: Event) -> Change | None:
        revision, key, kv, _ = event
        entries = self.entries
        old: Entry | None = entries.get(key)
        if self.unreadable:
            old = old or _last(self.unreadable.get(key))
        if revision <= (old.revision if old is not None else self.window_start):
            return None
        self.unreadable.pop(key, None)
        new = self._entry(kv) if kv is not None else None
        if new is not None:
            entries[key] = new
        elif kv is not None:
            self._lose(key, old)
            return None
        elif old is not None:
            entries.pop(key, None)
        else:
            return None
        self._indexes.move(old, new)
        change = Change(revision, old, new)
        self._remember(change)
        return change

    def _lose(self, key: str, old: Entry | None) -> None:
        """Records a key whose new value is unreadable. Subscribers get no event until the value is readable or
        deleted."""
        self.unreadable[key] = Lost(self.unreadable[key].reason, old)
        if self.entries.pop(key, None) is not None:
            self._indexes.move(old, None)

    def _remember(self, change: Change) -> None:
        cache, window = self.cache, self.window
        window.append(change)
        size = self._window_bytes + _weight(change)
        while len(window) > cache.window_changes or size > cache.window_bytes:
            dropped = window.popleft()
            size -= _weight(dropped)
            self.window_start = dropped.revision
        self._window_bytes = size

    def expire(self, revision: int) -> None:
        """Forgets the changes up to a revision, which the store has compacted."""
        while self.window and self.window[0].revision <= revision:
            self._window_bytes -= _weight(self.window.popleft())
        self.window_start = max(self.window_start, revision)
        self._pasts.clear()

    def subscribe(self, token: object, subscriber: Subscriber) -> None:
        self._subscribers[token] = subscriber

    def unsubscribe(self, token: object) -> None:
        self._subscribers.pop(token, None)

    def get(self, key: str) -> Entry | None:
        entry: Entry | None = self.entries.get(key)
        return entry

    def below(self, prefix: str, start: str = "") -> Iterator[Entry]:
        """Entries whose key starts with `prefix`, in key order, starting at `start`."""
        entries = self.entries
        if prefix == self.kind.prefix and not start:
            return iter(entries.values())
        keys = entries.irange(max(start, prefix), prefix[:-1] + chr(ord(prefix[-1]) + 1), (True, False))
        return map(entries.__getitem__, keys)

    async def past(self, revision: int) -> SortedDict[str, Entry] | Past:
        """Collection as it was at an earlier revision. The result is valid until the next change. Raises
        `Compacted`."""
        if revision < self.cache.revision:
            # Compaction ends a revision for all readers, even in collections that have not changed since.
            await self.cache.store.get(self.kind.prefix, revision)
        snapshot = self.at(revision)
        if snapshot is not None:
            return snapshot
        scan = await self.cache.store.scan(self.kind.prefix, revision=revision)
        past = Past(self.entries, self.cache.revision)
        then: dict[str, KeyValue] = {kv.key: kv for kv in scan.items}
        for key, kv in then.items():
            today = self.entries.get(key)
            if today is None or today.revision != kv.mod_revision:
                past.put(key, self._past(kv))
        for key in self.entries.keys() - then.keys():
            past.put(key, None)
        self._keep(revision, past)
        return past

    def at(self, revision: int) -> SortedDict[str, Entry] | Past | None:
        """Same as `past`, but only from the window and the cached past states. None if these do not reach back
        to `revision`."""
        past = self._pasts.get(revision) or Past(self.entries, revision)
        changes = self.since(past.seen)
        if changes is None:
            return None
        past.undo(changes)
        if not past:
            return self.entries
        self._keep(revision, past)
        return past

    def _keep(self, revision: int, past: Past) -> None:
        self._pasts.pop(revision, None)
        if past.size <= self.cache.window_bytes:
            self._pasts[revision] = past
            if len(self._pasts) > PASTS:
                del self._pasts[next(iter(self._pasts))]

    def since(self, revision: int) -> list[Change] | None:
        """Changes after a revision. None if the window does not reach back to it."""
        if revision < self.window_start:
            return None
        changes: list[Change] = []
        for change in reversed(self.window):
            if change.revision <= revision:
                break
            changes.append(change)
        changes.reverse()
        return changes

    async def history(self, revision: int) -> list[Change]:
        """Changes after a revision that the window no longer holds, read from the store. Raises `Compacted`."""
        target = self.cache.revision
        changes: list[Change] = []
        room = self.cache.window_bytes * HISTORY_WINDOWS
        async with contextlib.aclosing(self.cache.store.watch(self.kind.prefix, revision)) as batches:  # type: ignore[type-var]
            async for batch in batches:
                for event in batch.events:
                    if event.revision <= target:
                        old, new = self._past(event.prev), self._past(event.kv)
                        if old is not None or new is not None:
                            changes.append(Change(event.revision, old, new))
                            room -= _weight(changes[-1])
                if room < 0:
                    raise Compacted(self.window_start)
                if batch.revision >= target:
                    return changes
        return changes

    def _past(self, kv: KeyValue | None) -> Entry | None:
        """Entry of an earlier value. None if the value is not a valid object."""
        try:
            return self.kind.entry(kv.key, kv.value, kv.mod_revision) if kv is not None else None
        except Exception:
            return None

    async def examine(self, label: str | None) -> None:
        """Reads the labels and fields of all entries in slices, and builds the index for `label`, without
        blocking the loop."""
        await self._indexes.examine(self.entries, label)

    def labelled(self, label: str, value: str) -> list[Entry]:
        """Entries that have `label` with `value`, in key order."""
        return self._indexes.find(self.entries, label, value)


def _last(lost: Lost | None) -> Entry | None:
    return lost.last if lost is not None else None


def _weight(change: Change) -> int:
    old = change.old
    return 200 if old is None else 200 + len(old.tail)


def _difference(old: SortedDict[str, Entry], new: SortedDict[str, Entry], revision: int) -> list[Change]:
    """Changes that turn state `old` into state `new`. Intermediate changes are lost."""
    gone = [Change(revision, entry, None) for key, entry in old.items() if key not in new]
    come = [
        Change(entry.revision, before, entry)
        for key, entry in new.items()
        if (before := old.get(key)) is None or before.revision != entry.revision
    ]
    return sorted(gone + come, key=lambda change: change.revision)
