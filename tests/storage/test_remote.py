"""Guarantees of the remote store beyond the contract, mainly across restarts of its owner."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kubist.base import eager_task
from kubist.storage.remote import client as remote
from kubist.storage.remote import ipc
from kubist.storage.remote.client import RemoteStore
from kubist.storage.store import Batch, Compacted, Event, KeyValue, OpenFailed, Unavailable

from .owner import Owner


@contextlib.asynccontextmanager
async def owned(
    directory: Path, users: int = 1, **settings: float
) -> AsyncIterator[tuple[Owner, list[RemoteStore]]]:
    owner = Owner(directory, **settings)
    await owner.start()
    stores = [owner.user() for _ in range(users)]
    for store in stores:
        await store.open()
    try:
        yield owner, stores
    finally:
        for store in stores:
            await store.close()
        await owner.stop()


async def read(store: RemoteStore, after: int, until: int) -> list[Event]:
    """Events of a watch up to a revision."""
    events: list[Event] = []
    async with asyncio.timeout(20), contextlib.aclosing(store.watch("/r/", after)) as batches:  # type: ignore[type-var]
        async for batch in batches:
            events += batch.events
            if batch.revision >= until:
                break
    return events


async def test_acknowledged_write_is_in_the_shared_revision(tmp_path: Path) -> None:
    async with owned(tmp_path, 3) as (_, (first, *others)):
        for number in range(20):
            written = await first.create(f"/r/{number}", b"v")
            assert [await other.revision() >= written for other in others] == [True, True]


async def test_watch_has_heard_of_a_write_before_its_writer(tmp_path: Path) -> None:
    async with owned(tmp_path) as (_, (store,)):
        heard: list[int] = []

        async def follow() -> None:
            async for batch in store.watch("/r/", 0):
                heard.append(batch.revision)

        task = asyncio.create_task(follow())
        for number in range(50):
            written = await store.create(f"/r/{number}", b"v")
            await asyncio.sleep(0)
            assert heard[-1] >= written
        task.cancel()


async def test_watches_resume_without_a_gap_after_an_owner_restart(tmp_path: Path) -> None:
    async with owned(tmp_path, 2) as (owner, (first, second)):
        begin = await first.revision()
        following = [asyncio.create_task(read(store, begin, begin + 30)) for store in (first, second)]
        for number in range(30):
            if number % 10 == 5:
                await owner.stop()
                await owner.start()
            await first.create(f"/r/{number:02}", b"v")
        for events in await asyncio.gather(*following):
            assert [event.key for event in events] == [f"/r/{number:02}" for number in range(30)]


async def test_requests_wait_for_a_restarting_owner(tmp_path: Path) -> None:
    async with owned(tmp_path) as (owner, (store,)):
        await store.create("/r/a", b"v")
        await owner.stop()
        await asyncio.sleep(0.05)
        asked = [asyncio.create_task(store.get("/r/a")), asyncio.create_task(store.create("/r/b", b"v"))]
        await asyncio.sleep(0.05)
        assert not any(task.done() for task in asked)
        await owner.start()
        found, written = await asyncio.gather(*asked)
        assert isinstance(found, KeyValue) and found.value == b"v"
        assert isinstance(written, int)


async def test_absent_owner_is_unavailable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "OWNER_TIMEOUT", 0.05)
    async with owned(tmp_path) as (owner, (store,)):
        await owner.stop()
        await asyncio.sleep(0.05)
        with pytest.raises(Unavailable):
            await store.create("/r/a", b"v")
        with pytest.raises(Unavailable):
            await store.get("/r/a")
        with pytest.raises(Unavailable):
            await read(store, 0, 1000)
        monkeypatch.setattr(remote, "OWNER_TIMEOUT", 20)
        await owner.start()
        written = await store.create("/r/a", b"v")
        assert [event.key for event in await read(store, 0, written)] == ["/r/a"]


async def test_requests_without_a_task_wait_for_the_owner(tmp_path: Path) -> None:
    """On Python 3.11, a request has no task before its first wait."""
    async with owned(tmp_path) as (owner, (store,)):
        await store.create("/r/a", b"v")
        await owner.stop()
        await asyncio.sleep(0.05)
        values: list[KeyValue | None] = []

        async def request() -> None:
            values.append(await store.get("/r/a"))

        task = eager_task.begin(request(), asyncio.get_running_loop())
        assert task is not None
        await owner.start()
        await task
        assert [value and value.value for value in values] == [b"v"]


async def test_open_watch_fails_when_the_owner_stays_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "OWNER_TIMEOUT", 0.05)
    async with owned(tmp_path) as (owner, (store,)):
        watching = asyncio.create_task(read(store, 0, 1000))
        await asyncio.sleep(0.05)
        await owner.stop()
        with pytest.raises(Unavailable):
            await watching
        await owner.start()


async def test_client_absent_for_longer_than_history_must_read_again(tmp_path: Path) -> None:
    async with owned(tmp_path, 2) as (_, (first, second)):
        begin = await first.create("/r/a", b"v")
        assert second._frames is not None
        await read(second, 0, begin)
        second._keeper.cancel()
        second._frames.close()
        await asyncio.sleep(0.05)
        last = begin
        for _ in range(5):
            last = await first.update("/r/a", b"w", last)
        await first.compact(last)
        second._keeper = asyncio.create_task(second._keep_connected())
        with pytest.raises(Unavailable):
            await read(second, begin, last)
        with pytest.raises(Compacted):
            await read(second, begin, last)
        last = await first.create("/r/b", b"v")
        assert [event.key for event in await read(second, last - 1, last)] == ["/r/b"]


async def test_slow_client_has_a_bounded_queue_and_catches_up(tmp_path: Path) -> None:
    async with owned(tmp_path, 2) as (owner, (first, second)):
        begin = await first.revision()
        assert second._frames is not None and second._frames._transport is not None
        second._frames._transport.pause_reading()
        value = b"x" * 10_000
        for page in range(60):
            await asyncio.gather(*(first.create(f"/r/{page:02}-{number:02}", value) for number in range(100)))
        held = [
            connection.frames._transport.get_write_buffer_size()
            for connection in owner.server._connections
            if connection.frames._transport is not None
        ]
        assert max(held) < 10 << 20
        second._frames._transport.resume_reading()
        events = await read(second, begin, begin + 6000)
        assert [event.revision for event in events] == list(range(begin + 1, begin + 6001))


async def test_opening_without_an_owner_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "OPEN_SECONDS", 0.05)
    with pytest.raises(OpenFailed):
        await Owner(tmp_path).user().open()


def test_frames_are_reassembled_from_any_fragments() -> None:
    event = Event(5, "/r/a", KeyValue("/r/a", b"new", 3, 5), KeyValue("/r/a", b"old", 3, 4))
    sent: list[ipc.Message] = [
        (1, "get", "/r/\udc80", 0),
        (0, "events", ipc.batch(Batch(5, (event,)))),
        (2, "", None),
    ]
    data = b"".join(ipc.frame(*message) for message in sent)
    for size in (1, 3, 7, len(data)):
        received: list[ipc.Message] = []
        frames = ipc.Frames(received.append, lambda: None)
        for start in range(0, len(data), size):
            frames.data_received(data[start : start + size])
        assert received == sent
    assert ipc.read_events(sent[1][2][1]) == [event]
