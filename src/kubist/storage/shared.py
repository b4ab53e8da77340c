"""The newest revision of a store, in memory that processes share: a consistent read need not ask for it.

The owner of the store raises it before anybody hears of a change; whoever reads it later cannot miss that change.
"""

from __future__ import annotations

import mmap


class SharedRevision:
    """An aligned 64-bit number, read and written whole. Made before the processes that share it are forked."""

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
