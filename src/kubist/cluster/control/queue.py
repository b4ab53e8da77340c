"""Work queue of keys: one worker per key at a time, retries with backoff, delayed keys."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar

from kubist.base.clock import SYSTEM, Clock, Timer

K = TypeVar("K", bound=Hashable)

FIRST_DELAY = 0.01
LONGEST_DELAY = 60.0


class Order(Protocol[K]):
    """Ready keys in the order in which they are worked on."""

    def __len__(self) -> int: ...

    def append(self, key: K, /) -> None: ...

    def popleft(self) -> K: ...


class Queue(Generic[K]):
    """Keys in the order in which they were added, or in another one. A key that is added while a worker has it is
    queued again afterwards."""

    def __init__(
        self, arrived: Callable[[], None], clock: Clock | None = None, order: Order[K] | None = None
    ) -> None:
        self._clock = clock or SYSTEM
        self._ready: Order[K] = deque() if order is None else order
        self._pending: set[K] = set()
        self._active: set[K] = set()
        self._failures: dict[K, int] = {}
        self._timers: dict[Clock, dict[K, tuple[float, Timer]]] = {SYSTEM: {}, self._clock: {}}
        self._arrived = arrived
        """Called whenever a key becomes ready."""

    def add(self, key: K) -> None:
        if key in self._pending:
            return
        self._pending.add(key)
        if key not in self._active:
            self._ready.append(key)
            self._arrived()

    def add_after(self, key: K, seconds: float) -> None:
        """Adds the key after a delay on the server's clock, unless it is already due earlier."""
        self._add_later(self._clock, key, seconds)

    def add_soon(self, key: K, seconds: float) -> None:
        """Adds the key after a short delay on the system's clock, even while the server's clock is frozen: for retries,
        and for keys that several changes add."""
        self._add_later(SYSTEM, key, seconds)

    def _add_later(self, clock: Clock, key: K, seconds: float) -> None:
        timers, when = self._timers[clock], clock.monotonic() + seconds
        earlier = timers.get(key)
        if earlier is not None:
            if earlier[0] <= when:
                return
            earlier[1].cancel()
        timers[key] = (when, clock.call_after(seconds, self._due, timers, key))

    def _due(self, timers: dict[K, tuple[float, Timer]], key: K) -> None:
        del timers[key]
        self.add(key)

    def next(self) -> K | None:
        """The next ready key, or None. The worker must call `done` afterwards."""
        if not self._ready:
            return None
        key = self._ready.popleft()
        self._pending.discard(key)
        self._active.add(key)
        return key

    def done(self, key: K, *, failed: bool = False) -> None:
        self._active.discard(key)
        if key in self._pending:
            self._ready.append(key)
            self._arrived()
        if not failed:
            self._failures.pop(key, None)
            return
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        self.add_soon(key, min(FIRST_DELAY * 2.0 ** min(failures, 20), LONGEST_DELAY))

    def close(self) -> None:
        for timers in self._timers.values():
            for _, timer in timers.values():
                timer.cancel()
            timers.clear()
