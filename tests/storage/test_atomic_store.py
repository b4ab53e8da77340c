"""Stores of one process: changes that are made at once, and history in memory."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kubist.storage.memory import MemoryStore
from kubist.storage.sqlite.store import SqliteStore
from kubist.storage.store import AtomicStore, Compacted, Write

from .test_store import conflict, gone


@pytest.fixture(params=["memory", "sqlite"])
def atomic(request: pytest.FixtureRequest, tmp_path: Path) -> AtomicStore:
    return MemoryStore() if request.param == "memory" else SqliteStore(str(tmp_path / "kubist.db"))


async def test_changes_at_once_are_one_batch_of_a_watch(atomic: AtomicStore) -> None:
    await atomic.open()
    kept, last = await atomic.create("/r/kept", b"1"), await atomic.create("/r/gone", b"1")
    watch = atomic.watch("/r/", last)
    await anext(watch)
    writes = [Write("/r/gone", None, last), Write("/r/kept", b"2", kept), Write("/r/new", b"3", 0)]
    revision = await atomic.write_all(writes)
    assert revision == last + 3 == await atomic.revision()
    batch = await anext(watch)
    assert [(event.key, event.kv and event.kv.value) for event in batch.events] == [
        ("/r/gone", None),
        ("/r/kept", b"2"),
        ("/r/new", b"3"),
    ]
    assert [kv.key for kv in (await atomic.scan("/r/")).items] == ["/r/kept", "/r/new"]
    assert await atomic.write_all([]) == revision
    await watch.aclose()  # type: ignore[attr-defined]
    await atomic.close()


async def test_one_conflict_prevents_all_changes(atomic: AtomicStore) -> None:
    await atomic.open()
    revision = await atomic.create("/r/a", b"1")
    for last in (Write("/r/a", b"2", revision - 1), Write("/r/b", None, 7)):
        await conflict(atomic.write_all([Write("/r/new", b"", 0), last]))
    assert await atomic.revision() == revision
    assert await atomic.get("/r/new") is None
    await atomic.close()


async def test_keys_written_at_once_expire(atomic: AtomicStore) -> None:
    await atomic.open()
    await atomic.write_all([Write("/r/a", b"", 0, ttl=1), Write("/r/b", b"", 0)])
    await gone(atomic, "/r/a", 8)
    assert await atomic.get("/r/b") is not None
    await atomic.close()


async def test_history_in_memory_is_compacted_automatically() -> None:
    store = MemoryStore(history=0.1)
    await store.open()
    first = revision = await store.create("/r/a", b"one")
    for number in range(50):
        revision = await store.update("/r/a", b"%d" % number, revision)
    async with asyncio.timeout(20):
        while store._changes:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert not store._last and not store._before
    with pytest.raises(Compacted):
        await store.get("/r/a", first)
    kv = await store.get("/r/a")
    assert kv is not None and kv.mod_revision == revision
    await store.close()
