"""Retention of history: compacts a store of this process when its history is older than a number of seconds."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

MARKS = 10
"""Number of times per period that the current revision is recorded."""


class Retention:
    """Records the revision at intervals, and calls `compact` with the newest one that is old enough."""

    def __init__(self, seconds: float, revision: Callable[[], int], compact: Callable[[int], object]) -> None:
        self._seconds = seconds
        self._revision = revision
        self._compact = compact
        self._marks: deque[tuple[float, int]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._mark()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def resume(self) -> None:
        """Records revisions again, after a write. An idle store has no timer."""
        if self._timer is None:
            self._mark()

    def _mark(self) -> None:
        now = time.monotonic()
        marks = self._marks
        marks.append((now, self._revision()))
        while len(marks) > 1 and marks[1][0] <= now - self._seconds:
            marks.popleft()
        if marks[0][0] <= now - self._seconds:
            self._compact(marks[0][1])
            if marks[0][1] == marks[-1][1]:
                # Nothing is left to compact until the next write.
                marks.clear()
                self._timer = None
                return
        self._timer = asyncio.get_running_loop().call_later(self._seconds / MARKS, self._mark)
