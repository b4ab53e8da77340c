"""Movable clock: it shows the system's time until it is moved, and its timers follow it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest

from kubist.base import clock as clocks
from kubist.base.clock import CURRENT
from kubist.testbench.clock.movable import FASTEST, LATEST, MovableClock

HOUR = 3600.0


def run(test: Callable[[MovableClock], Awaitable[None]]) -> None:
    async def begin() -> None:
        clock = MovableClock()
        CURRENT.set(clock)
        try:
            await test(clock)
        finally:
            clock.close()

    asyncio.run(begin())
    assert clocks._moved == 0


def is_near(found: float, wanted: float) -> bool:
    return abs(found - wanted) < 60


def test_unmoved_clock_shows_the_systems_time() -> None:
    async def test(clock: MovableClock) -> None:
        assert is_near(clock.now(), time.time()) and is_near(clock.monotonic(), time.monotonic())
        assert (clock.speed, clock.offset, clock.is_moved) == (1.0, 0.0, False)
        assert clocks._moved == 0

    run(test)


def test_advanced_clock_is_ahead_and_goes_on() -> None:
    async def test(clock: MovableClock) -> None:
        before, monotonic = clock.now(), clock.monotonic()
        clock.advance(HOUR)
        assert is_near(clock.now(), before + HOUR) and is_near(clock.monotonic(), monotonic + HOUR)
        assert is_near(clocks.now(), before + HOUR) and is_near(clock.offset, HOUR)
        later = clock.now()
        await asyncio.sleep(0.01)
        assert clock.now() > later

    run(test)


def test_frozen_clock_stands_still_and_can_be_set() -> None:
    async def test(clock: MovableClock) -> None:
        clock.freeze()
        frozen = clock.now()
        await asyncio.sleep(0.01)
        assert clock.now() == frozen and clock.speed == 0
        clock.set(1_000_000.0)
        await asyncio.sleep(0.01)
        assert clock.now() == 1_000_000.0

    run(test)


def test_fast_clock_runs_faster() -> None:
    async def test(clock: MovableClock) -> None:
        clock.run(1000.0)
        real, began = time.monotonic(), clock.now()
        await asyncio.sleep(0.05)
        shown = clock.now() - began
        passed = time.monotonic() - real
        assert 49 <= shown <= passed * 1000 + 1

    run(test)


def test_monotonic_time_never_goes_back() -> None:
    async def test(clock: MovableClock) -> None:
        clock.advance(HOUR)
        before = clock.monotonic()
        clock.set(0.0)
        assert clock.monotonic() >= before
        clock.reset()
        assert not clock.is_moved and is_near(clock.now(), time.time())

    run(test)


def test_timers_that_became_due_fire_in_order() -> None:
    async def test(clock: MovableClock) -> None:
        fired: list[str] = []
        clock.freeze()
        clock.call_after(2 * HOUR, fired.append, "second")
        clock.call_after(HOUR, fired.append, "first")
        clock.call_after(3 * HOUR, fired.append, "third")
        cancelled = clock.call_after(HOUR, fired.append, "never")
        cancelled.cancel()
        await asyncio.sleep(0.01)
        assert fired == []
        clock.advance(2 * HOUR)
        await asyncio.sleep(0)
        assert fired == ["first", "second"]

    run(test)


def test_timer_of_a_running_clock_fires_by_itself() -> None:
    async def test(clock: MovableClock) -> None:
        fired: asyncio.Event = asyncio.Event()
        clock.call_after(0.01, fired.set)
        async with asyncio.timeout(10):
            await fired.wait()
        clock.run(FASTEST)
        async with asyncio.timeout(10):
            await clock.sleep(HOUR)

    run(test)


def test_timers_keep_their_wait_when_the_clock_is_reset() -> None:
    async def test(clock: MovableClock) -> None:
        soon, late = asyncio.Event(), asyncio.Event()
        clock.advance(HOUR)
        clock.call_after(HOUR, late.set)
        clock.call_after(0.01, soon.set)
        clock.reset()
        async with asyncio.timeout(10):
            await soon.wait()
        assert not late.is_set()

    run(test)


def test_cancelled_timers_are_forgotten() -> None:
    async def test(clock: MovableClock) -> None:
        kept = clock.call_after(HOUR, lambda: None)
        for _ in range(10_000):
            clock.call_after(HOUR, lambda: None).cancel()
        assert len(clock._timers) < 2_500
        kept.cancel()

    run(test)


@pytest.mark.parametrize(
    "move",
    [
        lambda clock: clock.advance(-1),
        lambda clock: clock.advance(float("inf")),
        lambda clock: clock.advance(float("nan")),
        lambda clock: clock.set(-1),
        lambda clock: clock.set(LATEST + 1),
        lambda clock: clock.run(0),
        lambda clock: clock.run(-1),
        lambda clock: clock.run(FASTEST * 2),
    ],
)
def test_impossible_moves_change_nothing(move: Callable[[MovableClock], None]) -> None:
    async def test(clock: MovableClock) -> None:
        with pytest.raises(ValueError, match="must"):
            move(clock)
        assert not clock.is_moved

    run(test)
