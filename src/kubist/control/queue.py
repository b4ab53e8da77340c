"""Work queue of keys: one worker per key at a time, retries with backoff, delayed keys."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from kubist.clock import Clock

K = TypeVar("K", bound=Hashable)

FIRST_DELAY = 0.01
LONGEST_DELAY = 60.0


class Queue(Generic[K]):
    """Keys in the order in which they were added. A key that is added while a worker has it is queued again
    afterwards."""

    def __init__(self, arrived: Callable[[], None], clock: Clock | None = None) -> None:
        self._clock = clock or Clock()
        self._ready: deque[K] = deque()
        self._wanted: set[K] = set()
        self._active: set[K] = set()
        self._failures: dict[K, int] = {}
        self._timers: dict[K, tuple[float, asyncio.TimerHandle]] = {}
        self._arrived = arrived
        """Called whenever a key becomes ready."""

    def add(self, key: K) -> None:
        if key in self._wanted:
            return
        self._wanted.add(key)
        if key not in self._active:
            self._ready.append(key)
            self._arrived()

    def add_after(self, key: K, seconds: float) -> None:
        """Adds the key after a delay, unless it is already due earlier."""
        when = self._clock.monotonic() + seconds
        earlier = self._timers.get(key)
        if earlier is not None:
            if earlier[0] <= when:
                return
            earlier[1].cancel()
        self._timers[key] = (when, self._clock.call_after(seconds, self._due, key))

    def _due(self, key: K) -> None:
        del self._timers[key]
        self.add(key)

    def next(self) -> K | None:
        """The next ready key, or None. The worker must call `done` afterwards."""
        if not self._ready:
            return None
        key = self._ready.popleft()
        self._wanted.discard(key)
        self._active.add(key)
        return key

    def done(self, key: K, *, failed: bool = False) -> None:
        self._active.discard(key)
        if key in self._wanted:
            self._ready.append(key)
            self._arrived()
        if not failed:
            self._failures.pop(key, None)
            return
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        self.add_after(key, min(FIRST_DELAY * 2.0 ** min(failures, 20), LONGEST_DELAY))

    def close(self) -> None:
        for _, timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
