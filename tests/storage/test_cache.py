"""Watch cache on real stores: it is exact at every revision, with lost changes, slow stores and late
collections."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import orjson
import pytest

from kubist.storage.cache.cache import ROOT, Cache, Change, Collection, StoredKind
from kubist.storage.memory import MemoryStore
from kubist.storage.store import Compacted, Conflict, Store, Unavailable

PREFIX = ROOT + "things/"


def kind(prefix: str = PREFIX) -> StoredKind:
    return StoredKind(prefix, "v1", "Thing", lambda obj: {}, orjson.loads)


def key(name: str, prefix: str = PREFIX) -> str:
    return f"{prefix}{name}"


def value(text: str, **labels: str) -> bytes:
    return kind().encode({"metadata": {"name": "x", "labels": labels}, "data": text})


def state(collection: Collection) -> dict[str, int]:
    return {name: entry.revision for name, entry in collection.entries.items()}


async def write_about(store: Store, dice: random.Random, names: list[str], rounds: int) -> None:
    """Creates, updates and deletes a few keys at random. Conflicts with other writers are ignored."""
    for _ in range(rounds):
        name = key(dice.choice(names))
        held = await store.get(name)
        try:
            if held is None:
                await store.create(name, value(str(dice.random())))
            elif dice.random() < 0.3:
                await store.delete(name, held.mod_revision)
            else:
                await store.update(name, value(str(dice.random())), held.mod_revision)
        except Conflict:
            pass


async def follow(collection: Collection, after: int, steps: int, over: asyncio.Event) -> list[Change]:
    """Watcher that disconnects and resumes every `steps` changes until the end."""
    found: list[Change] = []
    while True:
        changes = collection.since(after)
        if changes is None:
            changes = await collection.history(after)
        if not changes:
            if over.is_set():
                return found
            await asyncio.sleep(0.001)
            continue
        taken = changes[:steps]
        found += taken
        after = taken[-1].revision
        await asyncio.sleep(0)


async def test_small_window_delivers_every_change_once_in_order(store: Store) -> None:
    cache = Cache(store, window_changes=5)
    await cache.start([kind()])
    collection = cache.collections[PREFIX]
    live: list[Change] = []
    collection.subscribe("live", live.extend)
    begin = cache.revision
    names = [f"n{n}" for n in range(8)]
    writers = [write_about(store, random.Random(seed), names, 40) for seed in range(4)]
    over = asyncio.Event()
    watchers = [asyncio.create_task(follow(collection, begin, steps, over)) for steps in (10, 40)]
    await asyncio.gather(*writers)
    await cache.catch_up()
    over.set()
    resumed = await asyncio.gather(*watchers, follow(collection, begin, 25, over))
    await cache.stop()

    wanted = [change.revision for change in live]
    assert wanted == sorted(set(wanted))
    for found in resumed:
        assert [change.revision for change in found] == wanted
        for one, other in zip(found, live, strict=True):
            assert (one.old and one.old.tail) == (other.old and other.old.tail)
            assert (one.new and one.new.tail) == (other.new and other.new.tail)
    assert state(collection) == {kv.key: kv.mod_revision for kv in (await store.scan(PREFIX)).items}


async def test_late_collection_has_the_revision_of_the_cache(store: Store) -> None:
    cache = Cache(store)
    await cache.start([kind()])
    names = [f"n{n}" for n in range(20)]
    writers = [asyncio.create_task(write_about(store, random.Random(seed), names, 30)) for seed in range(3)]
    first = cache.collections[PREFIX]
    while not all(writer.done() for writer in writers):
        cache.forget(PREFIX)
        second = cache.collection(kind())
        await second.ready()
        assert second.at(cache.revision) is second.entries
        shown, revision = state(second), cache.revision
        held = await store.scan(PREFIX, revision=revision)
        assert shown == {kv.key: kv.mod_revision for kv in held.items}
    await asyncio.gather(*writers)
    await cache.stop()
    assert first is not second


async def test_acknowledged_write_is_in_the_cache_after_catching_up(store: Store) -> None:
    cache = Cache(store)
    await cache.start([kind()])
    for number in range(30):
        revision = await store.create(key(f"n{number}"), value("x"))
        await cache.catch_up()
        assert cache.revision >= revision
        assert cache.collections[PREFIX].get(key(f"n{number}")) is not None
    await cache.stop()


async def test_compacted_history_is_delivered_as_a_difference() -> None:
    store = MemoryStore()
    await store.open()
    cache = Cache(store)
    resets: list[int] = []
    cache.on_reset = lambda: resets.append(cache.revision)
    await cache.start([kind()])
    collection = cache.collections[PREFIX]
    stays = await store.create(key("stays"), value("1"))
    changes = await store.create(key("changes"), value("1"))
    goes = await store.create(key("goes"), value("1"))
    await cache.catch_up()
    told: list[Change] = []
    collection.subscribe("me", told.extend)

    store._hub.fail("away")
    changed = await store.update(key("changes"), value("2"), changes)
    gone = await store.delete(key("goes"), goes)
    come = await store.create(key("comes"), value("1"))
    await store.compact(come)
    await cache.catch_up()

    assert state(collection) == {key("stays"): stays, key("changes"): changed, key("comes"): come}
    assert len(resets) == cache.resets == 1 and resets[0] < changed
    by_name = {entry.name: change for change in told if (entry := change.new or change.old)}
    assert len(by_name) == len(told) == 3
    assert by_name["changes"].old and by_name["changes"].new
    assert by_name["comes"].old is None
    assert by_name["goes"].new is None and by_name["goes"].revision >= gone
    assert collection.since(changes) is None
    with pytest.raises(Compacted):
        await collection.history(changes)
    await cache.stop()
    await store.close()


async def test_cache_resumes_without_a_gap_after_an_outage() -> None:
    store = MemoryStore()
    await store.open()
    cache = Cache(store)
    await cache.start([kind()])
    told: list[int] = []
    cache.collections[PREFIX].subscribe("me", lambda changes: told.extend(c.revision for c in changes))
    written = []
    for number in range(60):
        if number % 20 == 10:
            store._hub.fail("away")
        written.append(await store.create(key(f"n{number}"), value("x")))
    await cache.catch_up()
    assert told == written
    assert cache.resets == 0
    await cache.stop()
    await store.close()


async def test_unreadable_value_is_skipped_and_does_not_block_others(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    await store.create(key("broken"), b"\xff not an object")
    cache = Cache(store)
    await cache.start([kind()])
    collection = cache.collections[PREFIX]
    assert not collection.entries
    good = await store.create(key("good"), value("1"))
    await store.update(key("good"), b"{", good)
    last = await store.create(key("last"), value("1"))
    await cache.catch_up()
    assert state(collection) == {key("last"): last}
    assert "broken cannot be read" in caplog.text
    await cache.stop()


async def test_failing_subscriber_does_not_block_the_others(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()
    await store.open()
    cache = Cache(store)
    await cache.start([kind()])
    told: list[Change] = []

    def fail(changes: Any) -> None:
        raise RuntimeError("broken listener")

    cache.collections[PREFIX].subscribe(1, fail)
    cache.collections[PREFIX].subscribe(2, told.extend)
    await store.create(key("a"), value("1"))
    await store.create(key("b"), value("1"))
    await cache.catch_up()
    assert len(told) == 2
    assert "a subscriber failed on a change" in caplog.text
    await cache.stop()
    await store.close()


async def test_waiting_for_a_revision_times_out_and_cleans_up(store: Store) -> None:
    cache = Cache(store)
    await cache.start([kind()])
    assert not await cache.wait(cache.revision + 1000, 0.05)
    waiting = asyncio.create_task(cache.wait(cache.revision + 1000))
    await asyncio.sleep(0.01)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert not cache._waiting
    soon = asyncio.create_task(cache.wait(cache.revision + 1))
    await store.create(key("a"), value("1"))
    assert await soon
    await cache.stop()


async def test_history_beyond_the_watch_limit_is_compacted() -> None:
    store = MemoryStore()
    await store.open()
    cache = Cache(store, window_changes=3, window_bytes=2000)
    await cache.start([kind()])
    revisions = [await store.create(key(f"n{n}"), value("x" * 300)) for n in range(100)]
    await cache.catch_up()
    collection = cache.collections[PREFIX]
    assert [change.revision for change in await collection.history(revisions[-5])] == revisions[-4:]
    with pytest.raises(Compacted):
        await collection.history(revisions[0])
    await cache.stop()
    await store.close()


async def test_unrequested_collection_is_not_loaded() -> None:
    store = MemoryStore()
    await store.open()
    cache = Cache(store)
    await cache.start([])
    idle = cache.collection(kind())
    await store.create(key("a"), value("1"))
    await cache.catch_up()
    assert not idle._delayed
    await idle.ready()
    assert list(idle.entries) == [key("a")]
    await cache.stop()
    await store.close()


async def test_reads_of_an_unavailable_store_raise_unavailable() -> None:
    store = MemoryStore()
    await store.open()
    cache = Cache(store)
    await cache.start([kind()])
    await store.close()
    with pytest.raises(Unavailable):
        await cache.collection(kind(ROOT + "others/")).ready()
    await asyncio.sleep(0.01)
    assert cache.problem == "the store is closed"
    await cache.stop()
