"""Clock that a test moves: frozen, set, advanced, or run faster.

Its timers wait in a heap, by their time on this clock. One timer of the event loop waits for the earliest. A move of
the clock fires everything that became due, in order of time, and sets that timer again.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections.abc import Callable
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import Any

from kubist.base import clock
from kubist.base.clock import Arguments, Clock

LATEST = 253_402_300_799.0
"""The last second of the year 9999, the latest time that objects can show."""
FASTEST = 100_000.0
_CANCELLED = 1000
"""Maximum number of cancelled timers that are kept, unless more timers are pending."""


@dataclass(order=True, slots=True)
class _Timer:
    """Scheduled call."""

    when: float
    number: int
    clock: MovableClock = field(compare=False)
    callback: Callable[..., object] | None = field(compare=False)
    args: tuple[Any, ...] = field(compare=False)
    context: Context = field(compare=False)

    def cancel(self) -> None:
        if self.callback is not None:
            self.callback, self.args = None, ()
            self.clock.count_cancelled()


class MovableClock(Clock):
    """Shows the system's time until it is moved. It belongs to one event loop."""

    def __init__(self) -> None:
        self._speed = 1.0
        self._since = 0.0
        """System's monotonic time of the last move."""
        self._wall = 0.0
        self._monotonic = 0.0
        """Time of day and monotonic time on this clock at the last move."""
        self._is_moved = False
        self._timers: list[_Timer] = []
        self._cancelled = 0
        self._numbers = itertools.count()
        self._alarm: asyncio.TimerHandle | None = None

    def now(self) -> float:
        return self._wall + self._passed() if self._is_moved else time.time()

    def monotonic(self) -> float:
        return self._monotonic + self._passed() if self._is_moved else time.monotonic()

    def _passed(self) -> float:
        """Seconds on this clock since the last move."""
        return (time.monotonic() - self._since) * self._speed

    @property
    def is_moved(self) -> bool:
        return self._is_moved

    @property
    def speed(self) -> float:
        """Seconds on this clock per second of the system's. 0 for a frozen clock."""
        return self._speed

    @property
    def offset(self) -> float:
        """Seconds by which this clock is ahead of the system's."""
        return self.now() - time.time() if self._is_moved else 0.0

    def advance(self, seconds: float) -> None:
        """Moves the clock forward. Everything that becomes due is called soon."""
        self.move(advanced(self.now(), seconds), self._speed)

    def set(self, now: float) -> None:
        """Sets the time of day. A step back moves no timer."""
        self.move(now, self._speed)

    def run(self, speed: float = 1.0) -> None:
        """Starts the clock, `speed` times as fast as the system's."""
        self.move(self.now(), checked_speed(speed))

    def freeze(self) -> None:
        """Stops the clock."""
        self.move(self.now(), 0.0)

    def reset(self) -> None:
        """Shows the system's time again. Timers keep their remaining time."""
        if not self._is_moved:
            return
        left = time.monotonic() - self.monotonic()
        for timer in self._timers:
            timer.when += left
        self._is_moved, self._speed = False, 1.0
        clock.count_moved(-1)
        self._set_alarm()

    def move(self, now: float, speed: float) -> None:
        """Sets the time of day and the speed, and fires everything that became due."""
        ahead = max(0.0, checked_time(now) - self.now())
        self._monotonic = self.monotonic() + ahead
        self._since = time.monotonic()
        self._wall, self._speed = now, speed
        if not self._is_moved:
            self._is_moved = True
            clock.count_moved(1)
        self._fire()

    def call_after(
        self, seconds: float, callback: Callable[[*Arguments], object], *args: *Arguments
    ) -> _Timer:
        when = self.monotonic() + max(0.0, seconds)
        timer = _Timer(when, next(self._numbers), self, callback, args, copy_context())
        heapq.heappush(self._timers, timer)
        if self._timers[0] is timer:
            self._set_alarm()
        return timer

    def count_cancelled(self) -> None:
        self._cancelled += 1
        if self._cancelled > max(_CANCELLED, len(self._timers) // 2):
            self._timers = [timer for timer in self._timers if timer.callback is not None]
            heapq.heapify(self._timers)
            self._cancelled = 0

    def _fire(self) -> None:
        """Calls everything that is due, each call in its own turn of the event loop."""
        timers, now = self._timers, self.monotonic()
        if timers and timers[0].when <= now:
            loop = asyncio.get_running_loop()
            while timers and timers[0].when <= now:
                timer = heapq.heappop(timers)
                if timer.callback is None:
                    self._cancelled = max(0, self._cancelled - 1)
                else:
                    loop.call_soon(timer.callback, *timer.args, context=timer.context)
                    timer.callback = None
        self._set_alarm()

    def _set_alarm(self) -> None:
        """Waits for the earliest timer."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self._timers and self._speed:
            left = max(0.0, self._timers[0].when - self.monotonic()) / self._speed
            self._alarm = asyncio.get_running_loop().call_later(left, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        self._fire()

    def close(self) -> None:
        """Forgets all timers."""
        self._timers.clear()
        if self._alarm is not None:
            self._alarm.cancel()
        if self._is_moved:
            self._is_moved = False
            clock.count_moved(-1)


def checked_time(now: float) -> float:
    """The time of day. ValueError if objects cannot show it."""
    if not 0 <= now <= LATEST:
        raise ValueError("must be between the years 1970 and 9999")
    return now


def advanced(now: float, seconds: float) -> float:
    """A later time of day. ValueError if it is earlier or too late."""
    if not seconds >= 0:
        raise ValueError("must not be negative: set the time to go back")
    return checked_time(now + seconds)


def checked_speed(speed: float) -> float:
    if not 0 < speed <= FASTEST:
        raise ValueError(f"must be greater than 0 and at most {FASTEST:g}")
    return speed
