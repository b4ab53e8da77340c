"""All objects of one kind in memory: today's state, a window of recent changes, indexes by label.

Moved on by the cache, which it belongs to.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from sortedcontainers import SortedDict

from kubist.storage.encryption.sealed import reason
from kubist.storage.entry import Change, Entry, StoredKind
from kubist.storage.store import Compacted, Event, KeyValue

if TYPE_CHECKING:
    from kubist.storage.cache import Cache

log = logging.getLogger("kubist.storage")

HISTORY_WINDOWS = 4
"""How much history, in windows, a watch may ask of the store; beyond that it is quicker to list again."""

Subscriber = Callable[[list[Change]], None]


class Follower(Protocol):
    """Told of everything in every loaded collection: what there is when it is loaded, then the changes."""

    def filled(self, collection: Collection) -> None: ...

    def changed(self, collection: Collection, changes: list[Change]) -> None: ...


class Lost(NamedTuple):
    """What became of a key whose value cannot be read: why, and the last version that could."""

    reason: str
    last: Entry | None


class Collection:
    """All objects of one kind."""

    def __init__(self, cache: Cache, kind: StoredKind) -> None:
        self.cache = cache
        self.kind = kind
        self.entries: SortedDict[str, Entry] = SortedDict()
        self.loaded = False
        self.unreadable: dict[str, Lost] = {}
        """Keys whose value is no object. They must not stop the others, nor be taken for deleted."""
        self._unread: dict[str, Lost] = {}
        """The same as of before the collection was last read anew."""
        self.window: deque[Change] = deque()
        self.window_start = 0
        """The revision from which on `window` is complete: changes after it are all there."""
        self._window_bytes = 0
        self._loading: asyncio.Task[None] | None = None
        self._held: list[Event] = []
        self._subscribers: dict[object, Subscriber] = {}
        self._indexes: dict[str, dict[str, set[str]]] = {}

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
            self._held.clear()
            self.read_anew()
            resets = cache.resets
            try:
                items, revision = await self._scan()
            except Compacted:
                continue
            # The feed may be behind what was read; the collection joins the others when it is not.
            await cache.catch_up()
            if resets == cache.resets:
                self.fill(items, revision)
                held, self._held = self._held, []
                self.apply([event for event in held if event.revision > revision])

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
        """All values are going to be read; what is unreadable will show."""
        self._unread, self.unreadable = self.unreadable, {}

    def read(self, kvs: Iterable[KeyValue]) -> Iterator[tuple[str, Entry]]:
        for kv in kvs:
            entry = self._entry(kv)
            if entry is not None:
                yield kv.key, entry

    def _entry(self, kv: KeyValue) -> Entry | None:
        """A stored value as an entry; None, and remembered as unreadable, if it is no object."""
        try:
            return self.kind.entry(kv.key, kv.value, kv.mod_revision)
        except Exception as error:
            why = reason(kv.value, error)
            log.error("%s cannot be read: %s", kv.key, why)
            self.unreadable[kv.key] = Lost(why, self.entries.get(kv.key) or _last(self._unread.get(kv.key)))
            return None

    def fill(self, items: list[tuple[str, Entry]], revision: int) -> None:
        """Be the collection as of `revision`, with no history. Who knew an earlier one is told the difference."""
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
        self.loaded = True
        if known:
            self._tell(_difference(before, self.entries, revision))
        else:
            for follower in list(self.cache.followers):
                follower.filled(self)

    def apply(self, events: list[Event]) -> None:
        """Move on by these changes, in order, and tell the subscribers."""
        if not self.loaded:
            if self._loading is not None:
                self._held += events
            return
        self._tell([change for event in events if (change := self._apply(event)) is not None])

    def _tell(self, changes: list[Change]) -> None:
        if not changes:
            return
        listeners = list(self._subscribers.values())
        listeners += [partial(follower.changed, self) for follower in self.cache.followers]
        for tell in listeners:
            try:
                tell(changes)
            except Exception:  # one that fails must not keep the others from hearing
                log.exception("a change of %s was not taken up", self.kind.prefix)

    def _apply(self, event: Event) -> Change | None:
        old: Entry | None = self.entries.get(event.key)
        if self.unreadable:
            old = old or _last(self.unreadable.get(event.key))
        if event.revision <= (old.revision if old is not None else self.window_start):
            return None
        self.unreadable.pop(event.key, None)
        new = self._entry(event.kv) if event.kv is not None else None
        if new is not None:
            self.entries[event.key] = new
        elif event.kv is not None:
            self._lose(event.key, old)
            return None
        elif old is not None:
            self.entries.pop(event.key, None)
        else:
            return None
        if self._indexes:
            self._reindex(event.key, old, new)
        change = Change(event.revision, old, new)
        self._remember(change)
        return change

    def _lose(self, key: str, old: Entry | None) -> None:
        """An object is there and cannot be read: nobody is told until that changes."""
        self.unreadable[key] = Lost(self.unreadable[key].reason, old)
        if self.entries.pop(key, None) is not None and self._indexes:
            self._reindex(key, old, None)

    def _remember(self, change: Change) -> None:
        cache, window = self.cache, self.window
        window.append(change)
        self._window_bytes += _weight(change)
        while len(window) > cache.window_changes or self._window_bytes > cache.window_bytes:
            dropped = window.popleft()
            self._window_bytes -= _weight(dropped)
            self.window_start = dropped.revision

    def subscribe(self, token: object, subscriber: Subscriber) -> None:
        self._subscribers[token] = subscriber

    def unsubscribe(self, token: object) -> None:
        self._subscribers.pop(token, None)

    def get(self, key: str) -> Entry | None:
        entry: Entry | None = self.entries.get(key)
        return entry

    def below(self, prefix: str, start: str = "") -> Iterator[Entry]:
        """Entries whose key begins with `prefix`, in key order, from `start` on."""
        entries = self.entries
        if prefix == self.kind.prefix and not start:
            return iter(entries.values())
        keys = entries.irange(max(start, prefix), prefix[:-1] + chr(ord(prefix[-1]) + 1), (True, False))
        return map(entries.__getitem__, keys)

    def at(self, revision: int) -> SortedDict[str, Entry] | None:
        """The collection as it was at a past revision: today's with the window undone. None: too old."""
        if revision < self.window_start:
            return None
        undo: dict[str, Entry | None] = {}
        for change in reversed(self.window):
            if change.revision <= revision:
                break
            entry = change.old or change.new
            assert entry is not None
            undo[entry.key] = change.old
        if not undo:
            return self.entries
        past = SortedDict(self.entries)
        for key, old in undo.items():
            if old is None:
                past.pop(key, None)
            else:
                past[key] = old
        return past

    def since(self, revision: int) -> list[Change] | None:
        """The changes after a revision. None: the window does not reach back that far."""
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
        """The changes after a revision that the window no longer holds, from the store. Raises Compacted."""
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
        """A value of the past as an entry, if it is an object."""
        try:
            return self.kind.entry(kv.key, kv.value, kv.mod_revision) if kv is not None else None
        except Exception:
            return None

    def labelled(self, label: str, value: str) -> list[str]:
        """Keys of the objects that carry a label, sorted. The index of a label is made when first asked for."""
        index = self._indexes.get(label)
        if index is None:
            index = self._indexes[label] = {}
            for key, entry in self.entries.items():
                if (held := entry.labels.get(label)) is not None:
                    index.setdefault(held, set()).add(key)
        return sorted(index.get(value, ()))

    def _reindex(self, key: str, old: Entry | None, new: Entry | None) -> None:
        for label, index in self._indexes.items():
            before = old.labels.get(label) if old is not None else None
            after = new.labels.get(label) if new is not None else None
            if before != after:
                if before is not None:
                    index[before].discard(key)
                    if not index[before]:
                        del index[before]
                if after is not None:
                    index.setdefault(after, set()).add(key)


def _last(lost: Lost | None) -> Entry | None:
    return lost.last if lost is not None else None


def _weight(change: Change) -> int:
    return 200 + (len(change.old.tail) if change.old is not None else 0)


def _difference(old: SortedDict[str, Entry], new: SortedDict[str, Entry], revision: int) -> list[Change]:
    """What turns one state into another, as far as it can still be told."""
    gone = [Change(revision, entry, None) for key, entry in old.items() if key not in new]
    come = [
        Change(entry.revision, before, entry)
        for key, entry in new.items()
        if (before := old.get(key)) is None or before.revision != entry.revision
    ]
    return sorted(gone + come, key=lambda change: change.revision)
