"""Store in memory: keys and their history in Python objects. It can start from the image of another store.

Values are immutable, so an image shares them with its store and with every store that starts from it.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from sortedcontainers import SortedDict

from kubist.base.clock import CURRENT, Timer
from kubist.storage.hub import Hub
from kubist.storage.retention import Retention
from kubist.storage.sqlite.log import FIRST_REVISION, prefix_end
from kubist.storage.store import (
    Batch,
    Compacted,
    Conflict,
    Event,
    FutureRevision,
    KeyValue,
    Scan,
    Unavailable,
    Write,
)

REPLAYED_CHANGES = 2000
EXPIRED_KEYS = 256
"""Maximum changes in one turn of the event loop: read for a watch, and made because keys expire."""


@dataclass(frozen=True, slots=True)
class StoreImage:
    """State of a store: keys at `revision`, and the last changes after `compacted`."""

    revision: int = FIRST_REVISION
    compacted: int = 0
    values: SortedDict[str, KeyValue] = field(default_factory=SortedDict)
    changes: list[Event] = field(default_factory=list)
    before: list[int] = field(default_factory=list)
    """For each change, the revision of the previous change of the same key, or 0."""
    last: dict[str, int] = field(default_factory=dict)
    """Revision of the last change of every key that has one in `changes`."""
    expiries: list[tuple[float, int, str]] = field(default_factory=list)

    def copy(self) -> StoreImage:
        return StoreImage(
            self.revision,
            self.compacted,
            self.values.copy(),
            self.changes.copy(),
            self.before.copy(),
            self.last.copy(),
            self.expiries.copy(),
        )


class MemoryStore:
    """`Store` in memory. Keeps `history` seconds of changes."""

    local = True

    def __init__(self, *, history: float = 300.0, image: StoreImage | None = None) -> None:
        state = StoreImage() if image is None else image.copy()
        self._history = history
        self._values = state.values
        self._changes = state.changes
        """The last changes. Each has the revision that follows the one before it."""
        self._before = state.before
        self._last = state.last
        self._expiries = state.expiries
        """Heap of Unix time, revision and key. A later write of the key cancels its expiry."""
        self._compacted = state.compacted
        self._revision = state.revision
        """Revision of the last write. The hub publishes it at the end of this turn of the event loop."""
        self._hub = Hub()
        self._open = False
        self._answers: list[tuple[asyncio.Future[int], int | Conflict]] = []
        """Outcomes of the writes of this turn of the event loop."""
        self._is_scheduled = False
        self._expiry: Timer | None = None
        self._expiry_due = 0.0

    async def open(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._clock = CURRENT.get()
        self._hub.revision = self._revision
        self._open = True
        self._retention = Retention(self._history, lambda: self._hub.revision, self._compact)
        self._expect_expiry()

    async def close(self) -> None:
        if not self._open:
            return
        self._publish()
        self._open = False
        self._retention.stop()
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        self._hub.fail("the store is closed")

    def image(self) -> StoreImage:
        """Copy of the state. It shares all values."""
        self._check_open()
        return StoreImage(
            self._revision,
            self._compacted,
            self._values,
            self._changes,
            self._before,
            self._last,
            self._expiries,
        ).copy()

    async def revision(self) -> int:
        return self._hub.revision

    async def check(self) -> None:
        """Does nothing: writes do not depend on a disk of this machine."""

    async def request_progress(self) -> None:
        self._hub.expect_progress(0.0)

    async def get(self, key: str, revision: int = 0) -> KeyValue | None:
        at = self._readable(revision)
        kv: KeyValue | None = self._values.get(key)
        changed = self._last.get(key, 0)
        while changed > at:
            place = self._place(changed)
            kv, changed = self._changes[place].prev, self._before[place]
        return kv

    async def scan(self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0) -> Scan:
        at = self._readable(revision)
        start, end = max(prefix, start), prefix_end(prefix)
        values = self._values
        keys: Iterator[str] = values.irange(start, end if isinstance(end, str) else None, (True, False))
        earlier = self._earlier_values(prefix, start, at)
        if limit:
            # Each key that changed since may remove one key from the page.
            keys = islice(keys, limit + 1 + len(earlier))
        items: list[KeyValue]
        if earlier:
            by_key: dict[str, KeyValue | None] = {key: values[key] for key in keys}
            by_key |= earlier
            items = [kv for key in sorted(by_key) if (kv := by_key[key]) is not None]
        else:
            items = [values[key] for key in keys]
        more = 0 < limit < len(items)
        return Scan(at, items[:limit] if more else items, more)

    def _earlier_values(self, prefix: str, start: str, at: int) -> dict[str, KeyValue | None]:
        """Values at revision `at` of the keys that changed after it."""
        earlier: dict[str, KeyValue | None] = {}
        if at < self._revision:
            for event in islice(self._changes, self._place(at) + 1, None):
                if event.key.startswith(prefix) and event.key >= start:
                    earlier.setdefault(event.key, event.prev)
        return earlier

    async def create(self, key: str, value: bytes, *, ttl: int = 0) -> int:
        return await self._write(Write(key, value, 0, ttl))

    async def update(self, key: str, value: bytes, expected: int, *, ttl: int = 0) -> int:
        return await self._write(Write(key, value, expected or -1, ttl))

    async def delete(self, key: str, expected: int) -> int:
        return await self._write(Write(key, None, expected or -1))

    async def write_all(self, writes: Sequence[Write]) -> int:
        return await self._write(*writes)

    def _write(self, *writes: Write) -> asyncio.Future[int]:
        """Changes the state now. The outcome, even a conflict, arrives after the watches have received all changes, so
        that the writer finds them in the cache."""
        self._check_open()
        answer: asyncio.Future[int] = self._loop.create_future()
        self._answers.append((answer, self._outcome(writes)))
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._publish)
        return answer

    def _outcome(self, writes: Sequence[Write]) -> int | Conflict:
        for key, _, expected, _ in writes:
            current: KeyValue | None = self._values.get(key)
            if (0 if current is None else current.mod_revision) != expected:
                return Conflict(current)
        for key, value, _, ttl in writes:
            self._change(key, value)
            if ttl:
                heapq.heappush(self._expiries, (self._clock.now() + ttl, self._revision, key))
                self._expect_expiry()
        return self._revision

    def _change(self, key: str, value: bytes | None) -> None:
        prev: KeyValue | None = self._values.get(key)
        self._revision = revision = self._revision + 1
        kv = None
        if value is None:
            del self._values[key]
        else:
            created = revision if prev is None else prev.create_revision
            kv = self._values[key] = KeyValue(key, value, created, revision)
        self._changes.append(Event(revision, key, kv, prev))
        self._before.append(self._last.get(key, 0))
        self._last[key] = revision

    def _publish(self) -> None:
        """Publishes the changes of this turn of the event loop, then completes their writes."""
        self._is_scheduled = False
        if not self._open:
            return
        if self._hub.revision < self._revision:
            self._retention.resume()
            self._hub.publish(self._revision, self._changes[self._place(self._hub.revision) + 1 :])
        answers, self._answers = self._answers, []
        for answer, outcome in answers:
            if answer.done():
                continue
            if isinstance(outcome, int):
                answer.set_result(outcome)
            else:
                answer.set_exception(outcome)

    def watch(self, prefix: str, after: int) -> AsyncIterator[Batch]:
        return self._hub.watch(prefix, after, self._replay)

    async def _replay(self, prefix: str, after: int, target: int) -> AsyncIterator[Batch]:
        self._check_open()
        if after >= target:
            yield Batch(target, ())
        while after < target:
            self._check_open()
            if after < self._compacted:
                raise Compacted(self._compacted)
            first = self._place(after) + 1
            page = self._changes[max(0, first) : first + min(REPLAYED_CHANGES, target - after)]
            after = page[-1].revision if page else target
            events = tuple(event for event in page if event.key.startswith(prefix))
            if events or after == target:
                yield Batch(after, events)
            await asyncio.sleep(0)

    async def compact(self, revision: int) -> None:
        self._check_open()
        if revision > self._hub.revision:
            raise FutureRevision(self._hub.revision)
        self._compact(revision)

    def _compact(self, revision: int) -> None:
        if revision <= self._compacted:
            return
        self._compacted = revision
        dropped = max(0, self._place(revision) + 1)
        for event in self._changes[:dropped]:
            if self._last.get(event.key) == event.revision:
                del self._last[event.key]
        del self._changes[:dropped]
        del self._before[:dropped]

    def _expect_expiry(self) -> None:
        """Waits for the earliest expiry."""
        if not self._expiries:
            return
        due = self._expiries[0][0]
        if self._expiry is not None:
            if self._expiry_due <= due:
                return
            self._expiry.cancel()
        self._expiry_due = due
        self._expiry = self._clock.call_after(max(0.0, due - self._clock.now()), self._expire)

    def _expire(self) -> None:
        """Deletes expired keys, a limited number in each turn of the event loop."""
        self._expiry = None
        if not self._open:
            return
        now = self._clock.now()
        for _ in range(EXPIRED_KEYS):
            if not self._expiries or self._expiries[0][0] > now:
                break
            _, revision, key = heapq.heappop(self._expiries)
            current: KeyValue | None = self._values.get(key)
            if current is not None and current.mod_revision == revision:
                self._change(key, None)
        self._publish()
        self._expect_expiry()

    def _place(self, revision: int) -> int:
        """Index in `_changes` of the change that made a revision."""
        return revision - self._revision + len(self._changes) - 1

    def _readable(self, revision: int) -> int:
        self._check_open()
        if revision > self._revision:
            raise FutureRevision(self._revision)
        if 0 < revision < self._compacted:
            raise Compacted(self._compacted)
        return revision or self._revision

    def _check_open(self) -> None:
        if not self._open:
            raise Unavailable("the store is closed")
