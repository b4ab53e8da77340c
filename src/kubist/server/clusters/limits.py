"""Limits of a cluster: its objects and their size, and its requests per second and per turn of the event loop."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque

from kubist.model.meta import status
from kubist.server.clusters.spec import Limits
from kubist.storage.cache.cache import Change, Collection
from kubist.storage.store import Store
from kubist.storage.wrapper import StoreWrapper


class LimitedStore(StoreWrapper):
    """`Store` that rejects writes above the limits. It follows the cache, which knows all objects."""

    def __init__(self, store: Store, name: str, limits: Limits) -> None:
        super().__init__(store)
        self._name = name
        self._limits = limits
        self.objects = 0
        self.bytes = 0
        self._pending = [0, 0]
        """Objects and bytes of writes in progress."""

    def filled(self, collection: Collection) -> None:
        self.objects += len(collection.entries)
        self.bytes += sum(len(entry.tail) for entry in collection.entries.values())

    def changed(self, _: Collection, changes: list[Change]) -> None:
        for change in changes:
            if change.new is not None:
                self.objects += 1
                self.bytes += len(change.new.tail)
            if change.old is not None:
                self.objects -= 1
                self.bytes -= len(change.old.tail)

    async def create(self, key: str, value: bytes, *, ttl: int = 0) -> int:
        self._check("objects", self.objects + self._pending[0] + 1, self._limits.objects)
        self._check("bytes", self.bytes + self._pending[1] + len(value), self._limits.bytes)
        self._pending[0] += 1
        self._pending[1] += len(value)
        try:
            return await self.inner.create(key, value, ttl=ttl)
        finally:
            self._pending[0] -= 1
            self._pending[1] -= len(value)

    async def update(self, key: str, value: bytes, expected: int, *, ttl: int = 0) -> int:
        if self._limits.bytes:
            current = await self.inner.get(key)
            grows = len(value) - (len(current.value) if current is not None else 0)
            if grows > 0:  # an object may always shrink
                self._check("bytes", self.bytes + self._pending[1] + grows, self._limits.bytes)
                self._pending[1] += grows
                try:
                    return await self.inner.update(key, value, expected, ttl=ttl)
                finally:
                    self._pending[1] -= grows
        return await self.inner.update(key, value, expected, ttl=ttl)

    def _check(self, what: str, amount: int, limit: int) -> None:
        if limit and amount > limit:
            raise status.APIError(
                403,
                "Forbidden",
                f"the cluster {self._name} has a limit of {limit} {what}: delete objects, or create a cluster with "
                "another limit",
            )


class Rate:
    """Token bucket for one second of requests. It uses the system's clock, because it protects the host."""

    __slots__ = ("_level", "_limit", "_seen")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._level = float(limit)
        self._seen = time.monotonic()

    def take(self) -> int:
        """Takes a request. 0 if it is within the limit, otherwise the seconds after which to try again."""
        now = time.monotonic()
        self._level = min(float(self._limit), self._level + (now - self._seen) * self._limit)
        self._seen = now
        if self._level >= 1.0:
            self._level -= 1.0
            return 0
        return max(1, math.ceil((1.0 - self._level) / self._limit))


REQUESTS = 16


class RequestTurns:
    """Requests of one cluster that begin in this turn of the event loop, and those that wait for the next turns.

    A cluster with thousands of requests therefore delays a request of another cluster by only a few milliseconds.
    """

    __slots__ = ("_begun", "_waiting")

    def __init__(self) -> None:
        self._begun = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    def take(self) -> asyncio.Future[None] | None:
        """Takes a place in this turn. If there is none, returns a future that ends the wait."""
        if not self._begun:
            asyncio.get_running_loop().call_soon(self._next)
        if self._begun < REQUESTS and not self._waiting:
            self._begun += 1
            return None
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        return future

    def _next(self) -> None:
        """Begins the next turn."""
        self._begun = 0
        waiting = self._waiting
        while waiting and self._begun < REQUESTS:
            future = waiting.popleft()
            if not future.done():  # its client may have left
                future.set_result(None)
                self._begun += 1
        if self._begun:
            asyncio.get_running_loop().call_soon(self._next)
