"""Numbers that the servers of one store allocate from one range, such as node ports."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol


class Snapshot(NamedTuple):
    """The record as of a revision of the store. Bit N of `bits` stands for number N of the range."""

    revision: int
    range: str
    bits: int


class Allocation(Protocol):
    """One range of numbers (`kubist.objectstore.rangeallocation`)."""

    numbers: range
    range: str

    async def allocate(self, number: int) -> bool:
        """Take a number of the range; False if it is allocated already."""
        ...

    async def allocate_any(self) -> int | None:
        """Take a random free number; None if none is free."""
        ...

    async def release(self, numbers: Iterable[int]) -> None:
        """Give numbers back."""
        ...

    async def read(self) -> Snapshot:
        """The record as the store has it now."""
        ...

    async def replace(self, old: Snapshot, bits: int) -> bool:
        """Write a bitmap over `old`; False if `old` is no longer the newest."""
        ...

    def bitmap(self, numbers: Iterable[int]) -> int:
        """The bits of those numbers that are in the range."""
        ...

    def allocated(self, snapshot: Snapshot) -> set[int]:
        """The allocated numbers of a snapshot."""
        ...
