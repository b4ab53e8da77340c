"""Guarantees of the SQLite store beyond the contract: durable writes, bounded file."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kubist.storage import hub
from kubist.storage.memory import MemoryStore
from kubist.storage.sqlite import commit as sqlite_commit
from kubist.storage.sqlite import writer as sqlite_writer
from kubist.storage.sqlite.store import SqliteStore
from kubist.storage.store import Compacted, Conflict, Event, Unavailable


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "kubist.db")


async def eventually(store: SqliteStore, query: str, answer: int) -> None:
    async with asyncio.timeout(30):
        while store._file.reader.execute(query).fetchone() != (answer,):  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def test_reopened_store_has_all_keys(path: str) -> None:
    store = SqliteStore(path)
    await store.open()
    first = await store.create("/r/a", b"one")
    second = await store.update("/r/a", b"two", first)
    third = await store.delete("/r/a", second)
    await store.create("/r/b", b"three", ttl=3600)
    await store.close()

    store = SqliteStore(path)
    await store.open()
    assert await store.revision() == third + 1
    assert [kv.key for kv in (await store.scan("/r/")).items] == ["/r/b"]
    kv = await store.get("/r/a", first)
    assert kv is not None and kv.value == b"one"
    batch = await anext(store.watch("/r/", first))
    assert [event.revision for event in batch.events] == [second, third, third + 1]
    await store.close()


async def test_revision_survives_the_compaction_of_everything(path: str) -> None:
    store = SqliteStore(path)
    await store.open()
    deleted = await store.delete("/r/a", await store.create("/r/a", b"one"))
    await store.compact(deleted)
    await store.close()
    store = SqliteStore(path)
    await store.open()
    assert await store.revision() == deleted
    with pytest.raises(Compacted):
        await store.get("/r/a", deleted - 1)
    assert await store.create("/r/a", b"two") == deleted + 1
    await store.close()


async def test_key_that_expired_while_closed_is_deleted_after_opening(path: str) -> None:
    store = SqliteStore(path)
    await store.open()
    created = await store.create("/r/a", b"one", ttl=1)
    await store.close()
    await asyncio.sleep(1.1)
    store = SqliteStore(path)
    await store.open()
    watch = store.watch("/r/", created)
    async with asyncio.timeout(30):
        async for batch in watch:
            if batch.events:
                break
    assert batch.events[0].kv is None
    assert await store.get("/r/a") is None
    await watch.aclose()  # type: ignore[attr-defined]
    await store.close()


@pytest.mark.parametrize("durable", [False, True])
async def test_watch_has_heard_of_a_write_before_its_writer(path: str, durable: bool) -> None:
    store = SqliteStore(path) if durable else MemoryStore()
    await store.open()
    heard = 0

    async def listen() -> None:
        nonlocal heard
        async for batch in store.watch("/r/", 1):
            heard = batch.revision

    async def write(writer: int) -> None:
        for number in range(50):
            assert await store.create(f"/r/{writer}-{number}", b"") <= heard

    listener = asyncio.ensure_future(listen())
    await asyncio.sleep(0.01)
    await asyncio.gather(*(write(writer) for writer in range(8)))
    listener.cancel()
    await asyncio.gather(listener, return_exceptions=True)
    await store.close()


# Failures


async def test_full_disk_is_unavailable_and_recovers(path: str) -> None:
    store = SqliteStore(path)
    await store.open()
    kept = await store.create("/r/kept", b"x" * 10_000)
    disk = store._file.writer
    (pages,) = disk.execute("PRAGMA page_count").fetchone()
    disk.execute(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(Unavailable, match="database or disk is full"):
        await store.create("/r/lost", b"x" * 100_000)
    assert await store.revision() == kept
    assert await store.get("/r/lost") is None
    disk.execute("PRAGMA max_page_count = 1000000")
    assert await store.create("/r/lost", b"x" * 100_000) == kept + 1
    await store.close()


async def test_unsynced_write_is_not_acknowledged(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SqliteStore(path)
    await store.open()
    first = await store.create("/r/a", b"one")
    with monkeypatch.context() as patch:
        patch.setattr(sqlite_commit, "commit", lambda connection: sqlite3.OperationalError("disk I/O error"))
        outcomes = await asyncio.gather(
            store.create("/r/b", b""), store.create("/r/a", b""), return_exceptions=True
        )
        assert [str(outcome) for outcome in outcomes] == [f"{path} is not available: disk I/O error"] * 2
        assert all(isinstance(outcome, Unavailable) for outcome in outcomes)
    assert await store.get("/r/b") is None
    assert await store.create("/r/b", b"two") == first + 1
    await store.close()


async def test_commit_that_took_effect_despite_an_error_reaches_the_watches(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(path)
    await store.open()
    watch = store.watch("/r/", await store.revision())
    await anext(watch)

    def fail(connection: sqlite3.Connection) -> sqlite3.Error:
        connection.execute("COMMIT")
        return sqlite3.OperationalError("disk I/O error")

    with monkeypatch.context() as patch:
        patch.setattr(sqlite_commit, "commit", fail)
        with pytest.raises(Unavailable):
            await store.create("/r/a", b"one")
    with pytest.raises(Conflict):
        await store.create("/r/a", b"two")
    second = await store.create("/r/b", b"three")
    seen: list[str] = []
    async with asyncio.timeout(30):
        async for batch in watch:
            seen += [event.key for event in batch.events]
            if batch.revision == second:
                break
    assert seen == ["/r/a", "/r/b"]
    await watch.aclose()  # type: ignore[attr-defined]
    await store.close()


async def test_expiry_is_retried_after_a_failure(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_writer, "EXPIRY_RETRY", 0.1)
    store = SqliteStore(path)
    await store.open()
    await store.create("/r/a", b"one", ttl=1)
    with monkeypatch.context() as patch:
        patch.setattr(sqlite_commit, "commit", lambda connection: sqlite3.OperationalError("disk I/O error"))
        await asyncio.sleep(1.2)
        assert await store.get("/r/a") is not None
    await eventually(store, "SELECT count(*) FROM changes WHERE value IS NULL", 1)
    assert await store.get("/r/a") is None
    await store.close()


async def test_closing_finishes_queued_writes(path: str) -> None:
    store = SqliteStore(path)
    await store.open()
    writes = [asyncio.ensure_future(store.create(f"/r/{number}", b"")) for number in range(2000)]
    await asyncio.sleep(0)
    await store.close()
    assert len(set(await asyncio.gather(*writes))) == 2000
    await store.open()
    assert len((await store.scan("/r/")).items) == 2000
    await store.close()


# Bounds


async def test_history_is_compacted_automatically(path: str) -> None:
    store = SqliteStore(path, history=0.3)
    await store.open()
    first = revision = await store.create("/r/a", b"one")
    for number in range(600):
        revision = await store.update("/r/a", b"%d" % number, revision)
    gone = await store.create("/r/gone", b"")
    await store.delete("/r/gone", gone)
    await eventually(store, "SELECT count(*) FROM changes", 1)
    with pytest.raises(Compacted):
        await store.get("/r/a", first)
    kv = await store.get("/r/a")
    assert kv is not None and kv.mod_revision == revision
    await store.close()


async def test_file_does_not_grow_with_changes(path: str) -> None:
    store = SqliteStore(path, history=1000)
    await store.open()
    revisions = [await store.create(f"/r/{number}", b"x" * 4000) for number in range(20)]
    sizes = []
    for _ in range(6):
        for _ in range(20):
            revisions = await asyncio.gather(
                *(store.update(f"/r/{number}", b"x" * 4000, was) for number, was in enumerate(revisions))
            )
        await store.compact(max(revisions))
        sizes.append(store._file.writer.execute("PRAGMA page_count").fetchone()[0])
    assert sizes[-1] <= sizes[1]
    await store.close()


async def test_long_scan_does_not_block_the_loop(path: str) -> None:
    store = SqliteStore(path)
    await store.open()
    await asyncio.gather(*(store.create(f"/r/{number}", b"x" * 3400) for number in range(3000)))
    turns = 0

    async def spin() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    spinner = asyncio.ensure_future(spin())
    await store.scan("/r/")
    spinner.cancel()
    assert turns >= 3000 // 256
    await store.close()


async def test_stalled_watch_holds_a_bounded_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    fan = hub.Hub(limit=10)
    store = MemoryStore()
    store._hub = fan
    await store.open()
    watch = store.watch("/r/", 1)
    await anext(watch)
    for number in range(50):
        await store.create(f"/r/{number}", b"")
    ((subscription,),) = fan._by_prefix.values()
    assert len(subscription._batches) <= 10
    seen: list[str] = []
    async with asyncio.timeout(30):
        while len(seen) < 50:
            seen += [event.key for event in (await anext(watch)).events]
    assert seen == [f"/r/{number}" for number in range(50)]
    await watch.aclose()  # type: ignore[attr-defined]
    await store.close()


def test_events_are_published_right_after_a_request_for_progress() -> None:
    """uvloop's handle of a 0-second timer has no `when`, which once broke the writer during a commit."""
    uvloop = pytest.importorskip("uvloop")

    async def main() -> list[str]:
        store = MemoryStore()
        await store.open()
        watch = store.watch("/r/", 1)
        await anext(watch)
        await store.request_progress()
        store._hub.publish(2, [Event(2, "/r/a", None, None)])
        async with asyncio.timeout(10):
            while not (events := (await anext(watch)).events):
                pass
        await watch.aclose()  # type: ignore[attr-defined]
        await store.close()
        return [event.key for event in events]

    assert uvloop.run(main()) == ["/r/a"]


@contextlib.asynccontextmanager
async def busy(path: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SqliteStore]:
    """Store with four recent writers, which would wait forever for all of them."""
    store = SqliteStore(path)
    await store.open()
    await asyncio.gather(*(store.create(f"/r/{name}", b"1") for name in "abcd"))
    monkeypatch.setattr(sqlite_writer, "BATCH_WAIT", 3600.0)
    async with asyncio.timeout(30):
        yield store
        await store.close()


async def test_transaction_waits_for_recent_writers(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with busy(path, monkeypatch) as store:
        some = [asyncio.ensure_future(store.create(f"/r/{name}", b"2")) for name in "efg"]
        await asyncio.sleep(0.05)
        assert not any(write.done() for write in some)
        await store.create("/r/h", b"2")
        await asyncio.gather(*some)


async def test_single_writer_waits_at_most_once(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with busy(path, monkeypatch) as store:
        monkeypatch.setattr(sqlite_writer, "BATCH_WAIT", 0.001)
        await store.create("/r/e", b"2")
        monkeypatch.setattr(sqlite_writer, "BATCH_WAIT", 3600.0)
        await store.create("/r/f", b"2")


async def test_transaction_begins_while_writes_keep_arriving(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with busy(path, monkeypatch) as store:
        monkeypatch.setattr(sqlite_writer, "BATCH_WAIT", 0.005)
        store._writer._last_writers = 1_000_000
        writes = [asyncio.ensure_future(store.create("/r/first", b"2"))]
        while not writes[0].done():
            writes.append(asyncio.ensure_future(store.create(f"/r/{len(writes)}", b"2")))
            await asyncio.sleep(0.001)
        await asyncio.gather(*writes)


async def test_closing_and_compacting_do_not_wait_for_writers(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with busy(path, monkeypatch) as store:
        write = asyncio.ensure_future(store.create("/r/e", b"2"))
        await asyncio.sleep(0.01)
        await store.compact(2)
        revision = await write
        store._writer._last_writers = 4
        write = asyncio.ensure_future(store.create("/r/f", b"2"))
        await asyncio.sleep(0.01)
        assert not write.done()
    assert await write == revision + 1
