from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kubist.api.resources.allocations import Allocations


class Pool:
    """Numbers that a write acquires."""

    def __init__(self, *broken: int) -> None:
        self.released: list[int] = []
        self.broken = broken

    def release(self, number: int) -> Callable[[], Awaitable[None]]:
        async def release() -> None:
            await asyncio.sleep(0)
            if number in self.broken:
                raise OSError(f"cannot release {number}")
            self.released.append(number)

        return release


def write(pool: Pool, *, stored: bool = False, error: BaseException | None = None) -> None:
    async def run() -> None:
        async with Allocations() as allocations:
            for number in (1, 2, 3):
                allocations.release_with(pool.release(number))
            if error is not None:
                raise error
            if stored:
                allocations.keep()

    asyncio.run(run())


def test_write_that_is_not_stored_releases_the_last_allocation_first() -> None:
    pool = Pool()
    write(pool)
    assert pool.released == [3, 2, 1]


def test_stored_write_keeps_its_allocations() -> None:
    pool = Pool()
    write(pool, stored=True)
    assert pool.released == []


@pytest.mark.parametrize("error", [ValueError("x"), asyncio.CancelledError()])
def test_failed_write_releases_its_allocations(error: BaseException) -> None:
    pool = Pool()
    with pytest.raises(type(error)):
        write(pool, error=error)
    assert pool.released == [3, 2, 1]


def test_failed_release_does_not_keep_the_other_allocations() -> None:
    pool = Pool(2)
    with pytest.raises(OSError, match="cannot release 2"):
        write(pool)
    assert pool.released == [3, 1]
