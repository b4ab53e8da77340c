"""Allocation of numbers, such as node ports, from a range that all servers on a store share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol


class Snapshot(NamedTuple):
    """Allocation record at a store revision. Bit N of `bits` is number N of the range."""

    revision: int
    range: str
    bits: int


class Allocation(Protocol):
    """Range of numbers. `kubist.api.objectstore.range_allocation` implements it."""

    numbers: range
    range: str

    async def allocate(self, number: int) -> bool:
        """Allocates a number of the range. Returns False if it is already allocated."""
        ...

    async def allocate_any(self) -> int | None:
        """Allocates a random free number. Returns None if the range is full."""
        ...

    async def release(self, numbers: Iterable[int]) -> None:
        """Releases numbers."""
        ...

    async def read(self) -> Snapshot:
        """Current record in the store."""
        ...

    async def replace(self, old: Snapshot, bits: int) -> bool:
        """Replaces the record `old` by a bitmap. Returns False if `old` is no longer the current record."""
        ...

    def bitmap(self, numbers: Iterable[int]) -> int:
        """Bits of the numbers that are in the range."""
        ...

    def allocated(self, snapshot: Snapshot) -> set[int]:
        """Allocated numbers of a snapshot."""
        ...
