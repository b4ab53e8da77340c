"""Contract of `kubist.storage.store`, tested on every store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest

from kubist.storage.sqlite import writer as sqlite_writer
from kubist.storage.store import Compacted, Conflict, FutureRevision, KeyValue, Store, Unavailable


async def conflict(attempt: Awaitable[int]) -> KeyValue | None:
    with pytest.raises(Conflict) as caught:
        await attempt
    return caught.value.current


async def fill(store: Store, *keys: str) -> int:
    revision = 0
    for key in keys:
        revision = await store.create(key, key.encode())
    return revision


async def gone(store: Store, key: str, seconds: float) -> None:
    async with asyncio.timeout(seconds):
        while await store.get(key) is not None:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


# Single keys


async def test_check_changes_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_writer, "CHECKED_SECONDS", 0.0)
    revision = await fill(store, "/registry/a")
    await store.check()
    assert await store.revision() == revision
    assert await store.create("/registry/b", b"two", ttl=3600) == revision + 1
    await store.check()
    assert [kv.key for kv in (await store.scan("/")).items] == ["/registry/a", "/registry/b"]


async def test_created_key_is_read_with_its_revisions(store: Store) -> None:
    before = await store.revision()
    revision = await store.create("/registry/pods/a", b"one")
    assert revision > before
    assert await store.revision() == revision
    assert await store.get("/registry/pods/a") == KeyValue("/registry/pods/a", b"one", revision, revision)


async def test_absent_key_reads_as_none(store: Store) -> None:
    assert await store.get("/registry/pods/absent") is None


async def test_creating_a_present_key_conflicts_with_its_value(store: Store) -> None:
    revision = await store.create("/registry/a", b"one")
    current = await conflict(store.create("/registry/a", b"two"))
    assert current == KeyValue("/registry/a", b"one", revision, revision)
    assert await store.get("/registry/a") == current


async def test_update_keeps_the_create_revision(store: Store) -> None:
    created = await store.create("/registry/a", b"one")
    updated = await store.update("/registry/a", b"two", created)
    assert updated > created
    assert await store.get("/registry/a") == KeyValue("/registry/a", b"two", created, updated)


async def test_stale_update_conflicts(store: Store) -> None:
    created = await store.create("/registry/a", b"one")
    updated = await store.update("/registry/a", b"two", created)
    current = await conflict(store.update("/registry/a", b"three", created))
    assert current == KeyValue("/registry/a", b"two", created, updated)
    assert await store.get("/registry/a") == current


@pytest.mark.parametrize("expected", [0, 1, 10_000_000])
async def test_update_and_delete_of_an_absent_key_conflict_with_nothing(store: Store, expected: int) -> None:
    assert await conflict(store.update("/registry/a", b"one", expected)) is None
    assert await conflict(store.delete("/registry/a", expected)) is None
    assert await store.get("/registry/a") is None


async def test_stale_delete_conflicts(store: Store) -> None:
    created = await store.create("/registry/a", b"one")
    updated = await store.update("/registry/a", b"two", created)
    for expected in (0, created):
        current = await conflict(store.delete("/registry/a", expected))
        assert current == KeyValue("/registry/a", b"two", created, updated)


async def test_deletion_has_a_revision_of_its_own(store: Store) -> None:
    created = await store.create("/registry/a", b"one")
    deleted = await store.delete("/registry/a", created)
    assert deleted > created
    assert await store.revision() == deleted
    assert await store.get("/registry/a") is None


async def test_key_created_again_is_a_new_key(store: Store) -> None:
    created = await store.create("/registry/a", b"one")
    await store.delete("/registry/a", created)
    again = await store.create("/registry/a", b"two")
    assert await store.get("/registry/a") == KeyValue("/registry/a", b"two", again, again)
    assert await conflict(store.delete("/registry/a", created)) is not None


async def test_failed_change_does_not_raise_the_revision(store: Store) -> None:
    created = await store.create("/registry/a", b"one")
    await conflict(store.create("/registry/a", b"two"))
    await conflict(store.delete("/registry/b", created))
    assert await store.revision() == created


@pytest.mark.parametrize(
    "value", [b"", b"\0\xff" * 10, b"x" * 1_000_000], ids=["empty", "binary", "megabyte"]
)
async def test_values_are_any_bytes(store: Store, value: bytes) -> None:
    await store.create("/registry/a", value)
    kv = await store.get("/registry/a")
    assert kv is not None and kv.value == value


async def test_get_at_an_earlier_revision(store: Store) -> None:
    created = await store.create("/registry/a", b"one")
    updated = await store.update("/registry/a", b"two", created)
    deleted = await store.delete("/registry/a", updated)
    assert await store.get("/registry/a", created) == KeyValue("/registry/a", b"one", created, created)
    assert await store.get("/registry/a", updated) == KeyValue("/registry/a", b"two", created, updated)
    assert await store.get("/registry/a", deleted) is None
    assert await store.get("/registry/a", created - 1) is None


async def test_reads_of_a_future_revision_are_rejected(store: Store) -> None:
    revision = await store.create("/registry/a", b"one")
    with pytest.raises(FutureRevision) as caught:
        await store.get("/registry/a", revision + 1000)
    assert caught.value.revision == revision
    with pytest.raises(FutureRevision) as caught:
        await store.scan("/registry/", revision=revision + 1000)
    assert caught.value.revision == revision


# Scans


async def test_scan_is_in_byte_order_below_its_prefix(store: Store) -> None:
    keys = ["/r/a", "/r/a-b", "/r/a/b", "/r/ab", "/r/B", "/r/é", "/r/～", "/r/😀", "/q/z", "/s/a", "/r"]
    revision = await fill(store, *keys)
    scan = await store.scan("/r/")
    below = sorted((key for key in keys if key.startswith("/r/")), key=str.encode)
    assert [kv.key for kv in scan.items] == below
    assert all(kv.value == kv.key.encode() for kv in scan.items)
    assert scan.revision == revision and not scan.more


async def test_scan_of_nothing_has_the_current_revision(store: Store) -> None:
    revision = await fill(store, "/r/a")
    scan = await store.scan("/s/")
    assert (scan.items, scan.more, scan.revision) == ([], False, revision)


async def test_scan_of_the_empty_prefix_returns_all_keys(store: Store) -> None:
    await fill(store, "/r/a", "/s/b")
    assert [kv.key for kv in (await store.scan("")).items] == ["/r/a", "/s/b"]


async def test_scan_starts_at_its_start_inclusive(store: Store) -> None:
    await fill(store, "/r/a", "/r/b", "/r/c")
    assert [kv.key for kv in (await store.scan("/r/", start="/r/b")).items] == ["/r/b", "/r/c"]
    assert [kv.key for kv in (await store.scan("/r/", start="/r/b\0")).items] == ["/r/c"]
    assert [kv.key for kv in (await store.scan("/r/", start="/a")).items] == ["/r/a", "/r/b", "/r/c"]
    assert (await store.scan("/r/", start="/s")).items == []


async def test_pages_at_one_revision_make_the_whole_scan(store: Store) -> None:
    keys = [f"/r/{number:03}" for number in range(25)]
    revision = await fill(store, *keys)
    seen: list[str] = []
    start, more = "", True
    while more:
        scan = await store.scan("/r/", start=start, limit=10, revision=revision)
        seen += [kv.key for kv in scan.items]
        start, more = seen[-1] + "\0", scan.more
        assert scan.revision == revision
        await store.create(f"/r/{len(seen):03}-later", b"")
    assert seen == keys


async def test_page_that_ends_with_the_last_key_has_no_more(store: Store) -> None:
    await fill(store, "/r/a", "/r/b", "/s/c")
    assert not (await store.scan("/r/", limit=2)).more
    assert (await store.scan("/r/", limit=1)).more


async def test_scan_at_an_earlier_revision(store: Store) -> None:
    first = await store.create("/r/a", b"one")
    second = await store.update("/r/a", b"two", first)
    third = await store.create("/r/b", b"three")
    await store.delete("/r/a", second)
    assert [(kv.key, kv.value) for kv in (await store.scan("/r/")).items] == [("/r/b", b"three")]
    then = await store.scan("/r/", revision=third)
    assert [(kv.key, kv.value) for kv in then.items] == [("/r/a", b"two"), ("/r/b", b"three")]
    assert [kv.mod_revision for kv in then.items] == [second, third]
    assert then.revision == third
    assert [kv.value for kv in (await store.scan("/r/", revision=first)).items] == [b"one"]


async def test_long_scan_is_complete_and_of_one_revision_while_others_write(store: Store) -> None:
    count = 1500
    await asyncio.gather(*(store.create(f"/r/{number:05}", b"x" * 2000) for number in range(count)))
    before = await store.scan("/r/")
    scan, _ = await asyncio.gather(
        store.scan("/r/"),
        asyncio.gather(*(store.delete(kv.key, kv.mod_revision) for kv in before.items[::7])),
    )
    again = await store.scan("/r/", revision=scan.revision)
    assert len(before.items) == count
    assert scan.items == again.items
    assert not scan.more


# Concurrency


async def test_one_of_many_concurrent_creates_of_a_key_wins(store: Store) -> None:
    attempts = [store.create("/r/a", b"%d" % number) for number in range(20)]
    outcomes = await asyncio.gather(*attempts, return_exceptions=True)
    won = [number for number, outcome in enumerate(outcomes) if isinstance(outcome, int)]
    assert len(won) == 1
    kv = await store.get("/r/a")
    assert kv is not None and kv.value == b"%d" % won[0]
    assert all(o.current == kv for o in outcomes if isinstance(o, Conflict))


async def test_concurrent_counting_loses_no_increment(store: Store) -> None:
    await store.create("/r/count", b"0")

    async def count(times: int) -> None:
        while times:
            kv = await store.get("/r/count")
            assert kv is not None
            try:
                await store.update(kv.key, b"%d" % (int(kv.value) + 1), kv.mod_revision)
                times -= 1
            except Conflict:
                continue

    await asyncio.gather(*(count(10) for _ in range(8)))
    kv = await store.get("/r/count")
    assert kv is not None and kv.value == b"80"


async def test_concurrent_writers_get_revisions_of_their_own(store: Store) -> None:
    revisions = await asyncio.gather(*(store.create(f"/r/{number}", b"") for number in range(200)))
    assert len(set(revisions)) == 200
    assert await store.revision() == max(revisions)


async def test_cancelled_write_does_not_disturb_others(store: Store) -> None:
    given_up = [asyncio.ensure_future(store.create(f"/r/given-up-{number}", b"")) for number in range(10)]
    kept = [asyncio.ensure_future(store.create(f"/r/kept-{number}", b"")) for number in range(10)]
    await asyncio.sleep(0)
    for task in given_up:
        task.cancel()
    assert len(set(await asyncio.gather(*kept))) == 10
    assert await store.create("/r/after", b"") > 0


# Expiry


async def test_key_with_ttl_expires_by_itself(store: Store) -> None:
    created = await store.create("/r/a", b"one", ttl=1)
    await store.create("/r/b", b"stays")
    assert await store.get("/r/a") is not None
    await gone(store, "/r/a", 8)
    assert await store.revision() > created
    assert await store.get("/r/b") is not None


async def test_update_replaces_the_ttl(store: Store) -> None:
    kept = await store.create("/r/kept", b"", ttl=1)
    taken = await store.create("/r/taken", b"")
    await store.update("/r/kept", b"", kept)
    await store.update("/r/taken", b"", taken, ttl=1)
    await gone(store, "/r/taken", 8)
    assert await store.get("/r/kept") is not None


# Compaction


async def test_compaction_deletes_only_history_below_its_revision(store: Store) -> None:
    first = await store.create("/r/a", b"one")
    second = await store.update("/r/a", b"two", first)
    third = await store.update("/r/a", b"three", second)
    await store.compact(second)
    for revision, value in ((second, b"two"), (third, b"three"), (0, b"three")):
        kv = await store.get("/r/a", revision)
        assert kv is not None and kv.value == value
        assert [kv.value for kv in (await store.scan("/r/", revision=revision)).items] == [value]
    with pytest.raises(Compacted) as caught:
        await store.get("/r/a", first)
    assert caught.value.revision == second
    with pytest.raises(Compacted) as caught:
        await store.scan("/r/", revision=first)
    assert caught.value.revision == second


async def test_compaction_of_deleted_keys_keeps_the_revision(store: Store) -> None:
    created = await store.create("/r/a", b"one")
    deleted = await store.delete("/r/a", created)
    await store.compact(deleted)
    assert await store.revision() == deleted
    assert await store.get("/r/a", deleted) is None
    assert await store.create("/r/a", b"two") > deleted


async def test_compacting_twice_is_harmless(store: Store) -> None:
    first = await store.create("/r/a", b"one")
    second = await store.update("/r/a", b"two", first)
    await store.compact(second)
    await store.compact(second)
    await store.compact(first)
    kv = await store.get("/r/a", second)
    assert kv is not None and kv.value == b"two"


async def test_future_revision_cannot_be_compacted(store: Store) -> None:
    revision = await store.create("/r/a", b"one")
    with pytest.raises(FutureRevision):
        await store.compact(revision + 1000)


async def test_closed_store_is_unavailable(store: Store) -> None:
    await store.create("/r/a", b"one")
    await store.close()
    for attempt in (store.get("/r/a"), store.scan("/r/"), store.create("/r/b", b""), store.delete("/r/a", 1)):
        with pytest.raises(Unavailable):
            await attempt
