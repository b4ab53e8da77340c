"""Every collection in memory, as bytes, with a window of recent changes. Feeds gets, lists and watches.

One feed of the whole store, in revision order, moves all collections on together: at any moment the cache
is the state of the store at `Cache.revision`. A collection is loaded when it is first asked for.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import orjson
from sortedcontainers import SortedDict

from kubist.storage.store import Compacted, Event, KeyValue, Store, Unavailable

ROOT = "/registry/"
WINDOW_CHANGES = 10_000
WINDOW_BYTES = 16 << 20
"""How much history a collection keeps in memory; what is older is asked of the store."""


class Entry:
    """One version of one object. `tail` is its JSON from `"metadata":{` on, with the resource version in it,
    so that an object, an item of a list and a watch event are each a constant, the tail, and a constant."""

    __slots__ = ("_fields", "_labels", "key", "kind", "reps", "revision", "tail")

    def __init__(self, key: str, revision: int, tail: bytes, kind: StoredKind) -> None:
        self.key = key
        self.revision = revision
        self.tail = tail
        self.kind = kind
        self._labels: dict[str, str] | None = None
        self._fields: dict[str, str] | None = None
        self.reps: dict[Any, Any] | None = None
        """Other representations of this version, made at most once each."""

    def object(self) -> dict[str, Any]:
        """A fresh copy of the object."""
        obj: dict[str, Any] = orjson.loads(b"".join((self.kind.head, self.tail)))
        return obj

    def json(self) -> bytes:
        return b"".join((self.kind.head, self.tail))

    @property
    def namespace(self) -> str:
        return self.key[len(self.kind.prefix) :].rpartition("/")[0]

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    @property
    def labels(self) -> dict[str, str]:
        if self._labels is None:
            self._examine()
        labels = self._labels
        assert labels is not None
        return labels

    @property
    def fields(self) -> dict[str, str]:
        """Selectable fields beyond name and namespace."""
        if self._fields is None:
            self._examine()
        fields = self._fields
        assert fields is not None
        return fields

    def _examine(self) -> None:
        obj = self.object()
        self._labels = obj["metadata"].get("labels") or {}
        self._fields = self.kind.fields(obj)


class StoredKind:
    """What the cache must know of a kind to keep it: how stored values begin, and what can be selected by."""

    __slots__ = ("api_version", "fields", "head", "normalize", "prefix")

    def __init__(
        self,
        prefix: str,
        api_version: str,
        kind: str,
        fields: Callable[[dict[str, Any]], dict[str, str]],
        normalize: Callable[[bytes], dict[str, Any]],
    ) -> None:
        self.prefix = prefix
        self.api_version = api_version
        self.head = b'{"kind":%b,"apiVersion":%b,' % (orjson.dumps(kind), orjson.dumps(api_version))
        self.fields = fields
        self.normalize = normalize
        """Makes an object in the stored version out of a value that does not begin with `head`: one that
        another server, or another version of the kind, has written."""

    def encode(self, obj: dict[str, Any]) -> bytes:
        """The stored form of an object: without resource version, metadata first."""
        metadata = obj["metadata"]
        metadata.pop("resourceVersion", None)
        rest = {key: value for key, value in obj.items() if key not in _HEAD_FIELDS}
        return self.head + orjson.dumps({"metadata": metadata, **rest})[1:]

    def entry(self, key: str, value: bytes, revision: int) -> Entry:
        start = len(self.head)
        if not (value.startswith(self.head) and value.startswith(_METADATA, start)):
            value = self.encode(self.normalize(value))
        tail = b'"metadata":{"resourceVersion":"%d",%b' % (revision, value[start + len(_METADATA) :])
        return Entry(key, revision, tail, self)


_HEAD_FIELDS = frozenset(("kind", "apiVersion", "metadata"))
_METADATA = b'"metadata":{'


class Change:
    """One change of one object as watchers see it. A deletion has no `new`; `last` is the old state carrying
    the version at which it went."""

    __slots__ = ("encoded", "gone", "new", "old", "revision")

    def __init__(self, revision: int, old: Entry | None, new: Entry | None) -> None:
        self.revision = revision
        self.old = old
        self.new = new
        self.gone: Entry | None = None
        self.encoded: dict[Any, bytes] = {}
        """Event bytes by representation and type, shared by all watchers."""

    def last(self) -> Entry:
        """The old state with the version of this change: what a DELETED event shows."""
        if self.gone is None:
            old = self.old
            assert old is not None
            start = old.tail.index(b'",', 31)
            tail = b'"metadata":{"resourceVersion":"%d%b' % (self.revision, old.tail[start:])
            self.gone = Entry(old.key, self.revision, tail, old.kind)
            self.gone._labels, self.gone._fields = old._labels, old._fields
        return self.gone


Subscriber = Callable[[list[Change]], None]


class Follower(Protocol):
    """Told of everything in every loaded collection: what there is when it is loaded, then the changes."""

    def filled(self, collection: Collection) -> None: ...

    def changed(self, collection: Collection, changes: list[Change]) -> None: ...


class Collection:
    """All objects of one kind."""

    def __init__(self, cache: Cache, kind: StoredKind) -> None:
        self.cache = cache
        self.kind = kind
        self.entries: SortedDict[str, Entry] = SortedDict()
        self.loaded = False
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
        self._held.clear()
        start, items = "", []
        revision = 0
        while True:
            page = await self.cache.store.scan(self.kind.prefix, start=start, limit=2000, revision=revision)
            revision = page.revision
            items += [(kv.key, self.kind.entry(kv.key, kv.value, kv.mod_revision)) for kv in page.items]
            if not page.more:
                break
            start = page.items[-1].key + "\0"
            await asyncio.sleep(0)
        self.fill(items, revision)
        held, self._held = self._held, []
        self.apply([event for event in held if event.revision > revision])

    def fill(self, items: list[tuple[str, Entry]], revision: int) -> None:
        """Be the collection as of `revision`, with no history."""
        self.entries = SortedDict(items)
        self.window.clear()
        self._window_bytes = 0
        self.window_start = revision
        self._indexes.clear()
        self.loaded = True
        for follower in list(self.cache.followers):
            follower.filled(self)

    def apply(self, events: list[Event]) -> None:
        """Move on by these changes, in order, and tell the subscribers."""
        if not self.loaded:
            self._held += events
            return
        changes = [change for event in events if (change := self._apply(event)) is not None]
        if changes:
            for subscriber in list(self._subscribers.values()):
                subscriber(changes)
            for follower in list(self.cache.followers):
                follower.changed(self, changes)

    def _apply(self, event: Event) -> Change | None:
        old: Entry | None = self.entries.get(event.key)
        if event.revision <= (old.revision if old is not None else self.window_start):
            return None
        new = None
        if event.kv is not None:
            new = self.kind.entry(event.key, event.kv.value, event.revision)
            self.entries[event.key] = new
        elif old is not None:
            del self.entries[event.key]
        else:
            return None
        if self._indexes:
            self._reindex(event.key, old, new)
        change = Change(event.revision, old, new)
        self._remember(change)
        return change

    def _remember(self, change: Change) -> None:
        self.window.append(change)
        self._window_bytes += _weight(change)
        while len(self.window) > WINDOW_CHANGES or (
            self._window_bytes > WINDOW_BYTES and len(self.window) > 100
        ):
            dropped = self.window.popleft()
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
        return (entries[key] for key in keys)

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
        async with contextlib.aclosing(self.cache.store.watch(self.kind.prefix, revision)) as batches:  # type: ignore[type-var]
            async for batch in batches:
                for event in batch.events:
                    if event.revision <= target:
                        changes.append(Change(event.revision, self._past(event.prev), self._past(event.kv)))
                if batch.revision >= target:
                    return changes
        return changes

    def _past(self, kv: KeyValue | None) -> Entry | None:
        return self.kind.entry(kv.key, kv.value, kv.mod_revision) if kv is not None else None

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


def _weight(change: Change) -> int:
    return 200 + (len(change.old.tail) if change.old is not None else 0)


class Cache:
    """All collections of a store, moved on by one feed."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.revision = 0
        self.collections: dict[str, Collection] = {}
        self.followers: set[Follower] = set()
        self._feed: asyncio.Task[None] | None = None
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self.on_reset: Callable[[], None] = lambda: None
        """Called when changes were missed (the store's history was gone): watches must end."""

    async def start(self, kinds: Iterable[StoredKind] = ()) -> None:
        """Load these kinds in one go, then follow the store."""
        for kind in kinds:
            self.collection(kind)
        await self._load()
        self._feed = asyncio.ensure_future(self._follow())

    async def _load(self) -> None:
        """One scan of everything, dealt out to the collections. What belongs to none (yet) is passed over."""
        found: dict[str, list[tuple[str, Entry]]] = {prefix: [] for prefix in self.collections}
        start, revision = "", 0
        while True:
            page = await self.store.scan(ROOT, start=start, limit=2000, revision=revision)
            revision = page.revision
            for kv in page.items:
                owner = self._owner(kv.key, self.collections)
                if owner is not None:
                    found[owner.kind.prefix].append(
                        (kv.key, owner.kind.entry(kv.key, kv.value, kv.mod_revision))
                    )
            if not page.more:
                break
            start = page.items[-1].key + "\0"
            await asyncio.sleep(0)
        self.revision = revision
        for prefix, items in found.items():
            self.collections[prefix].fill(items, revision)

    async def stop(self) -> None:
        if self._feed is not None:
            self._feed.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._feed

    def collection(self, kind: StoredKind) -> Collection:
        found = self.collections.get(kind.prefix)
        if found is None:
            found = self.collections[kind.prefix] = Collection(self, kind)
        return found

    def forget(self, prefix: str) -> None:
        self.collections.pop(prefix, None)

    async def _follow(self) -> None:
        delay = 0.05
        while True:
            try:
                async for batch in self.store.watch(ROOT, self.revision):
                    delay = 0.05
                    if batch.events:
                        self._apply(batch.events)
                    self._reached(batch.revision)
            except Compacted:
                self.revision = await self.store.revision()
                for collection in self.collections.values():
                    collection.loaded, collection._loading = False, None
                self.on_reset()
            except Unavailable:
                await asyncio.sleep(delay)
                delay = min(delay * 2, 2.0)

    def _apply(self, events: tuple[Event, ...]) -> None:
        collections = self.collections
        run: list[Event] = []
        at: Collection | None = None
        for event in events:
            collection = self._owner(event.key, collections)
            if collection is not at:
                if at is not None:
                    at.apply(run)
                at, run = collection, []
            if collection is not None:
                run.append(event)
        if at is not None:
            at.apply(run)

    @staticmethod
    def _owner(key: str, collections: dict[str, Collection]) -> Collection | None:
        """The collection of a key: `/registry/<resource>/…`, or one part more (`services/specs`, groups)."""
        end = key.find("/", len(ROOT)) + 1
        found = collections.get(key[:end])
        if found is None:
            found = collections.get(key[: key.find("/", end) + 1])
        return found

    def _reached(self, revision: int) -> None:
        if revision <= self.revision:
            return
        self.revision = revision
        if self._waiting:
            due = [future for target, future in self._waiting if target <= revision]
            self._waiting = [pair for pair in self._waiting if pair[0] > revision]
            for future in due:
                if not future.done():
                    future.set_result(None)

    async def wait(self, revision: int, seconds: float = 3.0) -> bool:
        """Until the cache has reached a revision; False if it did not in time."""
        if self.revision >= revision:
            return True
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((revision, future))
        try:
            await asyncio.wait_for(future, seconds)
        except TimeoutError:
            self._waiting = [pair for pair in self._waiting if pair[1] is not future]
            return False
        return True

    async def catch_up(self) -> None:
        """Until the cache is as new as the store is now: what a consistent read needs."""
        if self.store.local:
            return
        target = await self.store.revision()
        if not await self.wait(target):
            raise Unavailable("the cache did not catch up with the store in time")
