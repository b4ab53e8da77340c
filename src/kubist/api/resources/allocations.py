"""Allocations: what one write acquired outside its object, such as cluster IPs and node ports."""

from __future__ import annotations

from collections.abc import Awaitable, Callable


class Allocations:
    """Context manager of one write. On exit it releases what the write acquired, unless the write was stored.

    A hook registers the release before or right after it acquires something, so that nothing is lost if a later
    step fails. The write path calls `keep` at one place only: when the object is in the store."""

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
