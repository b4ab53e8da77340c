"""Allocation of numbers, such as node ports, that all servers on a store share; and the allocations of one write."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple, Protocol


class Snapshot(NamedTuple):
    """Allocation record at a store revision. Bit N of `bits` is number N of the range."""

    revision: int
    range: str
    bits: int


class Allocation(Protocol):
    """Range of numbers. `kubist.api.object_store.range_allocation` implements it."""

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
        """Replaces the record `old` with a bitmap. Returns False if `old` is no longer the current record."""
        ...

    def bitmap(self, numbers: Iterable[int]) -> int:
        """Bits of the numbers that are in the range."""
        ...

    def allocated(self, snapshot: Snapshot) -> set[int]:
        """Allocated numbers of a snapshot."""
        ...


class Allocations:
    """Context manager of one write. On exit it releases what the write acquired, unless the write was stored.

    A hook registers the release before or right after it acquires something, so that nothing is lost if a later step
    fails. The write path calls `keep` in only one place: when the object is in the store."""

    __slots__ = ("_releases",)

    def __init__(self) -> None:
        self._releases: list[Callable[[], Awaitable[None]]] = []

    def release_with(self, release: Callable[[], Awaitable[None]]) -> None:
        """Call `release` on exit, unless the object was stored."""
        self._releases.append(release)

    def keep(self) -> None:
        """The stored object owns what was acquired."""
        self._releases.clear()

    async def __aenter__(self) -> Allocations:
        return self

    async def __aexit__(self, *_: object) -> None:
        while self._releases:
            release = self._releases.pop()
            try:
                await release()
            except BaseException:
                await self.__aexit__()
                raise
