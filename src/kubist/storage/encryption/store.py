"""A store that keeps chosen values encrypted in another one. Whoever uses it sees plain values only.

A value that does not open comes out as it is stored, with the reason (`Sealed`): it must not stop the others.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing

from kubist.storage.encryption import config
from kubist.storage.encryption.config import Encryption, GroupResource
from kubist.storage.encryption.sealed import Sealed, Unreadable
from kubist.storage.encryption.tally import DataContext, Tally
from kubist.storage.encryption.transformer import Transformer
from kubist.storage.store import Batch, Conflict, Event, KeyValue, Scan, Store

log = logging.getLogger("kubist.storage")

ROOT = "/registry/"
RELOAD_SECONDS = 5.0


class EncryptedStore:
    """`Store` on top of `store`. `resources` names the resource of each key prefix that is not simply
    `/registry/GROUP/RESOURCE/`; `prefix` is what stands in the store for `/registry`, as keys are authenticated
    as they are there. Keys of no resource are left alone."""

    def __init__(
        self,
        store: Store,
        encryption: Encryption,
        resources: Mapping[str, GroupResource],
        *,
        prefix: str = ROOT.rstrip("/"),
    ) -> None:
        self.inner = store
        self.local = store.local
        self.tally = Tally()
        self._resources = dict(resources)
        self._prefix = prefix
        self._encryption = encryption
        self._ways: dict[str, tuple[Transformer | None, str]] = {}
        self.encrypt(encryption)

    def encrypt(self, encryption: Encryption) -> None:
        """Write and read by this configuration from now on."""
        self._encryption = encryption
        self._ways.clear()
        self.tally.config_hash = encryption.content_hash

    async def stale(self, key: str) -> bool:
        """Whether a write would keep the same value under another key or provider than it is now."""
        way = self._way(key)
        held = await self.inner.get(key) if way is not None else None
        if way is None or held is None:
            return False
        transformer, context = way
        try:
            return transformer.open(held.value, context)[1]
        except Unreadable:
            return False

    async def follow(self, path: str, *, every: float = RELOAD_SECONDS) -> AsyncIterator[None]:
        """Take up the configuration file whenever it changes; yields each time it has."""
        said = ""
        while True:
            await asyncio.sleep(every)
            try:
                if await asyncio.to_thread(config.digest, path) == self._encryption.content_hash:
                    continue
                encryption = await asyncio.to_thread(config.read, path)
            except (OSError, ValueError) as error:
                self.tally.reloaded("failure")
                if str(error) != said:
                    said = str(error)
                    log.error("keeping the old encryption configuration: %s", said)
                continue
            said = ""
            self.encrypt(encryption)
            self.tally.reloaded("success")
            log.info("took up the new encryption configuration %s", path)
            yield

    # The contract

    async def open(self) -> None:
        await self.inner.open()

    async def close(self) -> None:
        await self.inner.close()

    async def revision(self) -> int:
        return await self.inner.revision()

    async def request_progress(self) -> None:
        await self.inner.request_progress()

    async def get(self, key: str, revision: int = 0) -> KeyValue | None:
        return self._opened(await self.inner.get(key, revision))

    async def scan(self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0) -> Scan:
        scan = await self.inner.scan(prefix, start=start, limit=limit, revision=revision)
        return Scan(scan.revision, [self._open(kv) for kv in scan.items], scan.more)

    async def create(self, key: str, value: bytes, *, ttl: int = 0) -> int:
        try:
            return await self.inner.create(key, self._seal(key, value), ttl=ttl)
        except Conflict as lost:
            raise Conflict(self._opened(lost.current)) from None

    async def update(self, key: str, value: bytes, expected: int, *, ttl: int = 0) -> int:
        try:
            return await self.inner.update(key, self._seal(key, value), expected, ttl=ttl)
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

    async def compact(self, revision: int) -> None:
        await self.inner.compact(revision)

    # Values

    def _event(self, event: Event) -> Event:
        return Event(event.revision, event.key, self._opened(event.kv), self._opened(event.prev))

    def _opened(self, kv: KeyValue | None) -> KeyValue | None:
        return None if kv is None else self._open(kv)

    def _open(self, kv: KeyValue) -> KeyValue:
        way = self._way(kv.key)
        if way is None:
            return kv
        transformer, context = way
        try:
            value, _ = transformer.open(kv.value, context)
        except Unreadable as error:
            value = Sealed(kv.value, str(error))
        return KeyValue(kv.key, value, kv.create_revision, kv.mod_revision)

    def _seal(self, key: str, value: bytes) -> bytes:
        way = self._way(key)
        return value if way is None else way[0].seal(value, way[1])

    def _way(self, key: str) -> tuple[Transformer, DataContext] | None:
        """How the value of a key is kept; None: plainly."""
        end = key.find("/", len(ROOT)) + 1
        found = self._ways.get(key[:end])
        if found is None:
            longer = key[: key.find("/", end) + 1]
            found = self._ways.get(longer) or self._find(key[:end], longer)
        transformer, resource = found
        if transformer is None:
            return None
        name = (self._prefix + key[len(ROOT) - 1 :]).encode("utf-8", "surrogateescape")
        return transformer, DataContext(name, resource, self.tally)

    def _find(self, short: str, longer: str) -> tuple[Transformer | None, str]:
        prefix, resource = short, self._resources.get(short)
        if resource is None:
            prefix, resource = longer, self._resources.get(longer)
        if resource is None:
            group, _, plural = longer[len(ROOT) :].rstrip("/").partition("/")
            if "." not in group or not plural:
                return None, ""
            resource = GroupResource(group, plural)
        way = self._encryption.transformer(resource), str(resource)
        self._ways[prefix] = way
        return way
