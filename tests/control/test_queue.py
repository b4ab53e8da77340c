"""Work queue of a controller: one worker per key, retries, delays."""

from __future__ import annotations

import asyncio
import itertools

from kubist.control.queue import Queue


def queue() -> Queue[str]:
    return Queue(lambda: None)


def test_key_is_queued_once() -> None:
    keys = queue()
    for key in ("a", "b", "a"):
        keys.add(key)
    assert [keys.next(), keys.next(), keys.next()] == ["a", "b", None]


def test_key_added_while_active_is_queued_again() -> None:
    keys = queue()
    keys.add("a")
    assert keys.next() == "a"
    keys.add("a")
    assert keys.next() is None
    keys.done("a")
    assert keys.next() == "a"


def test_failed_keys_are_retried_with_backoff() -> None:
    async def work() -> list[float]:
        arrived = asyncio.Event()
        keys: Queue[str] = Queue(arrived.set)
        keys.add("a")
        times = []
        for _ in range(4):
            await arrived.wait()
            arrived.clear()
            times.append(asyncio.get_running_loop().time())
            key = keys.next()
            assert key == "a"
            keys.done(key, failed=True)
        keys.close()
        return [later - earlier for earlier, later in itertools.pairwise(times)]

    waits = asyncio.run(work())
    assert waits[0] >= 0.009
    assert waits[2] > waits[0] * 2


def test_earliest_delay_counts() -> None:
    async def work() -> None:
        arrived = asyncio.Event()
        keys: Queue[str] = Queue(arrived.set)
        keys.add_after("a", 60)
        keys.add_after("a", 0.01)
        keys.add_after("a", 30)
        await asyncio.wait_for(arrived.wait(), 5)
        assert keys.next() == "a"
        keys.close()

    asyncio.run(work())
