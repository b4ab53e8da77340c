"""Base class of stores that add something to another store. It passes every call on."""

from __future__ import annotations

from collections.abc import AsyncIterator

from kubist.storage.store import Batch, KeyValue, Scan, Store


class StoreWrapper:
    """`Store` that passes every call to `inner`."""

    def __init__(self, store: Store) -> None:
        self.inner = store
        self.local = store.local

    async def open(self) -> None:
        await self.inner.open()

    async def close(self) -> None:
        await self.inner.close()

    async def revision(self) -> int:
        return await self.inner.revision()

    async def check(self) -> None:
        await self.inner.check()

    async def request_progress(self) -> None:
        await self.inner.request_progress()

    async def get(self, key: str, revision: int = 0) -> KeyValue | None:
        return await self.inner.get(key, revision)

    async def scan(self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0) -> Scan:
        return await self.inner.scan(prefix, start=start, limit=limit, revision=revision)

    async def create(self, key: str, value: bytes, *, ttl: int = 0) -> int:
        return await self.inner.create(key, value, ttl=ttl)

    async def update(self, key: str, value: bytes, expected: int, *, ttl: int = 0) -> int:
        return await self.inner.update(key, value, expected, ttl=ttl)

    async def delete(self, key: str, expected: int) -> int:
        return await self.inner.delete(key, expected)

    def watch(self, prefix: str, after: int) -> AsyncIterator[Batch]:
        return self.inner.watch(prefix, after)

    async def compact(self, revision: int) -> None:
        await self.inner.compact(revision)
