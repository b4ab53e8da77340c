"""Memory bound for representations of stored versions. The oldest are dropped first.

The representations live in `Entry.reps` and are freed with their entry. This module only records where each one is, and
its size.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

LIMIT = 96 << 20
EVENTS_LIMIT = 24 << 20
OVERHEAD = 120
"""Bytes of bookkeeping per cached piece."""


class Kept:
    """Bounded set of cached pieces. Each is built at most once while there is room."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.limit = limit
        self.size = 0
        self._pieces: deque[tuple[dict[Any, Any], Any, int]] = deque()
        self._lock = threading.Lock()

    def keep(self, reps: dict[Any, Any], key: Any, piece: Any, size: int) -> None:
        """Stores a piece in the representations of an entry, and drops the oldest pieces above the limit."""
        reps[key] = piece
        size += OVERHEAD
        with self._lock:
            self._pieces.append((reps, key, size))
            self.size += size
            while self.size > self.limit:
                old, old_key, old_size = self._pieces.popleft()
                old.pop(old_key, None)
                self.size -= old_size


KEPT = Kept()
"""One bound per process, because servers in one process share its memory."""
EVENTS = Kept(EVENTS_LIMIT)
"""Separate bound for watch events, because most are never used again and would displace pieces that lists need."""
