"""Watch contract, tested on every store: every change once, in order, resumed without a gap."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator

import pytest

from kubist.storage.store import Batch, Compacted, Conflict, Event, KeyValue, Store, Unavailable


class Watcher:
    """Watch that is read in the background. It checks that revisions rise and that events belong to their
    batch."""

    def __init__(self, store: Store, prefix: str, after: int) -> None:
        self.events: list[Event] = []
        self.batches = 0
        self.revision = after
        self._prefix = prefix
        self._news = asyncio.Event()
        self._task = asyncio.ensure_future(self._read(store.watch(prefix, after)))

    async def _read(self, watch: AsyncIterator[Batch]) -> None:
        try:
            async for batch in watch:
                assert batch.revision >= self.revision or not self.batches
                for event in batch.events:
                    assert event.revision > (self.events[-1].revision if self.events else self.revision)
                    assert event.revision <= batch.revision
                    assert event.key.startswith(self._prefix)
                    self.events.append(event)
                self.revision = max(self.revision, batch.revision)
                self.batches += 1
                self._news.set()
        finally:
            self._news.set()

    async def reach(self, revision: int, seconds: float = 30) -> list[Event]:
        """Events up to `revision`; waits for them."""
        async with asyncio.timeout(seconds):
            while self.revision < revision or not self.batches:
                if self._task.done():
                    await self._task
                self._news.clear()
                await self._news.wait()
        return self.events

    async def failure(self) -> BaseException:
        async with asyncio.timeout(10):
            await asyncio.wait([self._task])
        error = self._task.exception()
        assert error is not None
        return error

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


async def test_watched_changes_have_the_previous_value(store: Store) -> None:
    watcher = Watcher(store, "/r/", await store.revision())
    first = await store.create("/r/a", b"one")
    second = await store.update("/r/a", b"two", first)
    third = await store.delete("/r/a", second)
    one, two = KeyValue("/r/a", b"one", first, first), KeyValue("/r/a", b"two", first, second)
    assert await watcher.reach(third) == [
        Event(first, "/r/a", one, None),
        Event(second, "/r/a", two, one),
        Event(third, "/r/a", None, two),
    ]
    await watcher.stop()


async def test_watch_starts_with_its_revision(store: Store) -> None:
    revision = await store.create("/r/a", b"one")
    watcher = Watcher(store, "/other/", revision)
    assert await watcher.reach(revision) == []
    await watcher.stop()


async def test_watch_replays_history_then_live_changes(store: Store) -> None:
    before = await store.revision()
    first = await store.create("/r/a", b"one")
    second = await store.update("/r/a", b"two", first)
    watcher, later = Watcher(store, "/r/", before), Watcher(store, "/r/", first)
    await watcher.reach(second)
    third = await store.delete("/r/a", second)
    assert [event.revision for event in await watcher.reach(third)] == [first, second, third]
    assert [event.revision for event in await later.reach(third)] == [second, third]
    assert watcher.events[1:] == later.events
    await watcher.stop()
    await later.stop()


async def test_recreated_key_has_no_previous_value(store: Store) -> None:
    before = await store.revision()
    first = await store.create("/r/a", b"one")
    second = await store.delete("/r/a", first)
    third = await store.create("/r/a", b"two")
    watcher = Watcher(store, "/r/", before)
    last = (await watcher.reach(third))[-1]
    assert (last.revision, last.prev) == (third, None)
    assert watcher.events[1].revision == second
    await watcher.stop()


async def test_watch_reports_only_its_prefix(store: Store) -> None:
    after = await store.revision()
    prefixes = ["", "/r/", "/r/a", "/r/a/", "/s/"]
    watchers = {prefix: Watcher(store, prefix, after) for prefix in prefixes}
    keys = ["/r/a", "/r/a/b", "/r/ab", "/r", "/s/x", "/rr/y", "/s"]
    revision = after
    for key in keys:
        revision = await store.create(key, b"")
    for prefix, watcher in watchers.items():
        events = await watcher.reach(revision)
        assert [event.key for event in events] == [key for key in keys if key.startswith(prefix)]
        await watcher.stop()


async def test_watch_of_a_quiet_prefix_receives_progress(store: Store) -> None:
    watcher = Watcher(store, "/quiet/", await store.revision())
    await watcher.reach(0)
    for number in range(5):
        await store.create(f"/busy/{number}", b"")
    assert await watcher.reach(await store.revision(), seconds=3) == []
    last = await store.create("/busy/last", b"")
    await store.request_progress()
    assert await watcher.reach(last, seconds=3) == []
    await watcher.stop()


async def test_expiry_is_seen_as_a_deletion(store: Store) -> None:
    watcher = Watcher(store, "/r/", await store.revision())
    created = await store.create("/r/a", b"one", ttl=1)
    event = (await watcher.reach(created + 1))[-1]
    assert event.kv is None
    assert event.prev == KeyValue("/r/a", b"one", created, created)
    await watcher.stop()


async def test_watch_from_a_future_revision_waits_for_it(store: Store) -> None:
    revision = await store.create("/r/a", b"")
    watcher = Watcher(store, "/r/", revision + 2)
    for number in range(4):
        revision = await store.create(f"/r/{number}", b"")
    assert [event.key for event in await watcher.reach(revision)] == ["/r/2", "/r/3"]
    await watcher.stop()


async def test_compacted_history_cannot_be_watched(store: Store) -> None:
    first = await store.create("/r/a", b"one")
    second = await store.update("/r/a", b"two", first)
    third = await store.update("/r/a", b"three", second)
    fourth = await store.update("/r/a", b"four", third)
    await store.compact(third)
    error = await Watcher(store, "/r/", first).failure()
    assert isinstance(error, Compacted) and error.revision == third
    watcher = Watcher(store, "/r/", third)
    (event,) = await watcher.reach(fourth)
    assert event.prev is not None and event.prev.value == b"three"
    await watcher.stop()


async def test_closing_the_store_ends_its_watches(store: Store) -> None:
    watcher = Watcher(store, "/r/", await store.revision())
    await watcher.reach(0)
    await store.close()
    assert isinstance(await watcher.failure(), Unavailable)


async def churn(
    store: Store, writer: int, changes: int, written: list[tuple[int, str, bytes | None]]
) -> None:
    """Creates, updates and deletes keys with several writers at random, and records acknowledged changes."""
    dice = random.Random(writer)
    for number in range(changes):
        key = f"/r/{dice.randrange(20):02}"
        current = await store.get(key)
        value: bytes | None = b"%d-%d" % (writer, number)
        try:
            if current is None:
                revision = await store.create(key, value or b"")
            elif dice.random() < 0.3:
                value = None
                revision = await store.delete(key, current.mod_revision)
            else:
                revision = await store.update(key, value or b"", current.mod_revision)
        except Conflict:
            continue
        written.append((revision, key, value))


async def test_watches_among_concurrent_writers_see_each_change_once_and_in_order(store: Store) -> None:
    after = await store.revision()
    written: list[tuple[int, str, bytes | None]] = []
    watchers = [Watcher(store, "/r/", after)]
    writers = [asyncio.ensure_future(churn(store, number, 40, written)) for number in range(8)]
    while not all(writer.done() for writer in writers):
        await asyncio.sleep(0.02)
        if len(watchers) < 12:
            watchers.append(Watcher(store, "/r/", after))
    await asyncio.gather(*writers)
    written.sort()
    for watcher in watchers:
        events = await watcher.reach(written[-1][0])
        assert [(e.revision, e.key, e.kv.value if e.kv else None) for e in events] == written
        held: dict[str, KeyValue | None] = {}
        for event in events:
            assert event.prev == held.get(event.key)
            held[event.key] = event.kv
        await watcher.stop()


async def test_watch_resumed_at_random_misses_no_change(store: Store) -> None:
    written: list[tuple[int, str, bytes | None]] = []
    position = await store.revision()
    dice = random.Random(1)
    seen: list[int] = []
    writers = [asyncio.ensure_future(churn(store, number, 60, written)) for number in range(4)]
    done = asyncio.gather(*writers)
    while not (done.done() and position >= max(revision for revision, *_ in written)):
        watch = store.watch("/r/", position)
        try:
            async with asyncio.timeout(dice.random() * 0.1):
                async for batch in watch:
                    seen += [event.revision for event in batch.events]
                    position = batch.revision
        except TimeoutError:
            pass
        await watch.aclose()  # type: ignore[attr-defined]
    await done
    assert seen == sorted(revision for revision, *_ in written)


@pytest.mark.parametrize("unread", [100, 6000])
async def test_stalled_reader_continues_at_its_revision(store: Store, unread: int) -> None:
    watch = store.watch("/r/", await store.revision())
    await anext(watch)
    for page in range(0, unread, 100):
        await asyncio.gather(*(store.create(f"/r/{page + number:05}", b"") for number in range(100)))
    last = await store.revision()
    seen: list[int] = []
    async with asyncio.timeout(20):
        async for batch in watch:
            seen += [event.revision for event in batch.events]
            if batch.revision >= last:
                break
    await watch.aclose()  # type: ignore[attr-defined]
    assert len(seen) == unread and seen == sorted(set(seen))
