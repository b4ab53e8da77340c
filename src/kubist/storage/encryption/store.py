"""Store that encrypts the values of configured resources in an inner store. Callers see plain values only."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import aclosing

from kubist.storage.encryption import config
from kubist.storage.encryption.values import Values
from kubist.storage.store import Batch, Conflict, Event, KeyValue, Scan, Store
from kubist.storage.wrapper import StoreWrapper

log = logging.getLogger("kubist.storage")

RELOAD_SECONDS = 5.0


class EncryptedStore(StoreWrapper):
    """`Store` that encrypts the values of the inner store `store`."""

    def __init__(self, store: Store, values: Values) -> None:
        super().__init__(store)
        self.values = values

    async def stale(self, key: str) -> bool:
        """Whether the value of a key must be rewritten although it is unchanged, because the key or provider
        changed."""
        held = await self.inner.get(key)
        return held is not None and self.values.stale(held)

    async def follow(self, path: str, *, every: float = RELOAD_SECONDS) -> AsyncIterator[None]:
        """Reloads the configuration file when its content changes. Yields after each successful reload."""
        values, said = self.values, ""
        while True:
            await asyncio.sleep(every)
            try:
                if await asyncio.to_thread(config.digest, path) == values.encryption.content_hash:
                    continue
                encryption = await asyncio.to_thread(config.read, path)
            except (OSError, ValueError) as error:
                values.tally.reloaded("failure")
                if str(error) != said:
                    said = str(error)
                    log.error("keeping the old encryption configuration: %s", said)
                continue
            said = ""
            values.use(encryption)
            values.tally.reloaded("success")
            log.info("reloaded the encryption configuration %s", path)
            yield

    async def get(self, key: str, revision: int = 0) -> KeyValue | None:
        return self._opened(await self.inner.get(key, revision))

    async def scan(self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0) -> Scan:
        scan = await self.inner.scan(prefix, start=start, limit=limit, revision=revision)
        return Scan(scan.revision, list(map(self.values.open, scan.items)), scan.more)

    async def create(self, key: str, value: bytes, *, ttl: int = 0) -> int:
        try:
            return await self.inner.create(key, self.values.seal(key, value), ttl=ttl)
        except Conflict as lost:
            raise Conflict(self._opened(lost.current)) from None

    async def update(self, key: str, value: bytes, expected: int, *, ttl: int = 0) -> int:
        try:
            return await self.inner.update(key, self.values.seal(key, value), expected, ttl=ttl)
        except Conflict as lost:
            raise Conflict(self._opened(lost.current)) from None

    async def delete(self, key: str, expected: int) -> int:
        try:
            return await self.inner.delete(key, expected)
        except Conflict as lost:
            raise Conflict(self._opened(lost.current)) from None

    async def watch(self, prefix: str, after: int) -> AsyncIterator[Batch]:
        async with aclosing(self.inner.watch(prefix, after)) as batches:  # type: ignore[type-var]
            async for batch in batches:
                yield Batch(batch.revision, tuple(map(self._event, batch.events))) if batch.events else batch

    def _event(self, event: Event) -> Event:
        return Event(event.revision, event.key, self._opened(event.kv), self._opened(event.prev))

    def _opened(self, kv: KeyValue | None) -> KeyValue | None:
        return None if kv is None else self.values.open(kv)
