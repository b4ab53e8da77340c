"""A bound on what is kept beside the stored bytes: representations of stored versions, oldest out first.

They live in `Entry.reps` and go with their entry; this only remembers, per piece, where it is and how large.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

LIMIT = 96 << 20
EVENTS_LIMIT = 24 << 20
OVERHEAD = 120
"""What remembering a piece costs by itself."""


class Kept:
    """Pieces made at most once while there is room for them."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.limit = limit
        self.size = 0
        self._pieces: deque[tuple[dict[Any, Any], Any, int]] = deque()
        self._lock = threading.Lock()

    def keep(self, reps: dict[Any, Any], key: Any, piece: Any, size: int) -> None:
        """Put a piece into the representations of an entry, and throw out the oldest elsewhere if need be."""
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
"""One bound for the process: servers in one process share its memory."""
EVENTS = Kept(EVENTS_LIMIT)
"""Events of recent changes, which would push out what lists need: most are never asked for again."""
