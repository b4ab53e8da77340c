"""Work queue of a controller: one worker per key, retries, delays."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from kubist.base.clock import Clock, Timer
from kubist.cluster.control.queue import Queue


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


def test_failed_keys_are_retried_with_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    delays: list[float] = []

    def note_delay(self: Clock, seconds: float, callback: Callable[..., object], *args: object) -> Timer:
        delays.append(seconds)
        return asyncio.get_running_loop().call_later(0, callback, *args)

    monkeypatch.setattr(Clock, "call_after", note_delay)

    async def work() -> None:
        arrived = asyncio.Event()
        keys: Queue[str] = Queue(arrived.set)
        keys.add("a")
        for _ in range(4):
            await arrived.wait()
            arrived.clear()
            key = keys.next()
            assert key == "a"
            keys.done(key, failed=True)
        keys.close()

    asyncio.run(work())
    assert delays == pytest.approx([0.01, 0.02, 0.04, 0.08])


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
