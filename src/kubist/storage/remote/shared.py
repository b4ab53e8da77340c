"""Newest revision of a store in shared memory, so that a consistent read needs no request.

The owner raises it before any process learns of a change. A later reader therefore cannot miss that change.
"""

from __future__ import annotations

import mmap


class SharedRevision:
    """Aligned 64-bit number, which is read and written atomically. Created before the processes that share it
    are forked."""

    __slots__ = ("_cell", "_memory")

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, mmap.PAGESIZE)
        self._cell = memoryview(self._memory).cast("Q")

    @property
    def value(self) -> int:
        return self._cell[0]

    def reach(self, revision: int) -> None:
        if revision > self._cell[0]:
            self._cell[0] = revision
