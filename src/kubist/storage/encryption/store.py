"""Store that encrypts the values of configured resources in an inner store. Callers see plain values only.

A value that cannot be decrypted is returned as stored, with the reason (`Undecrypted`), so that it does not block
other values.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing

from kubist.storage.encryption import config
from kubist.storage.encryption.ciphers import DataContext, Transformer
from kubist.storage.encryption.config import Encryption, GroupResource
from kubist.storage.encryption.metrics import Metrics
from kubist.storage.encryption.unreadable import Undecrypted, Unreadable
from kubist.storage.store import Batch, Conflict, Event, KeyValue, Scan, Store
from kubist.storage.wrapper import StoreWrapper

ROOT = "/registry/"


class Values:
    """Encrypts and decrypts values by the resource of their key.

    `resources` maps key prefixes other than `/registry/GROUP/RESOURCE/` to their resource.

    `prefix` replaces `/registry` in the authenticated key, because AES-GCM authenticates the key as it is in
    etcd. Keys that belong to no resource are stored in plain text.
    """

    def __init__(
        self, encryption: Encryption, resources: Mapping[str, GroupResource], *, prefix: str = "/registry"
    ) -> None:
        self.metrics = Metrics()
        self._resources = dict(resources)
        self._prefix = prefix
        self.use(encryption)

    def use(self, encryption: Encryption) -> None:
        """Switches to this configuration for reads and writes."""
        self.encryption = encryption
        self._ways: dict[str, tuple[Transformer | None, str]] = {}
        self.metrics.config_hash = encryption.content_hash

    def seal(self, key: str, value: bytes) -> bytes:
        way = self._way(key)
        return value if way is None else way[0].seal(value, way[1])

    def open(self, kv: KeyValue) -> KeyValue:
        way = self._way(kv.key)
        if way is None:
            return kv
        transformer, context = way
        try:
            value, _ = transformer.open(kv.value, context)
        except Unreadable as error:
            value = Undecrypted(kv.value, str(error))
        return KeyValue(kv.key, value, kv.create_revision, kv.mod_revision)

    def stale(self, kv: KeyValue) -> bool:
        """Whether a write would store the same value under another key or provider."""
        way = self._way(kv.key)
        try:
            return way is not None and way[0].open(kv.value, way[1])[1]
        except Unreadable:
            return False

    def _way(self, key: str) -> tuple[Transformer, DataContext] | None:
        """Transformer and context for a key. None: the value is stored in plain text."""
        end = key.find("/", len(ROOT)) + 1
        way = self._ways.get(key[:end])
        if way is None:
            longer = key[: key.find("/", end) + 1]
            way = self._ways.get(longer) or self._find(key[:end], longer)
        transformer, resource = way
        if transformer is None:
            return None
        name = (self._prefix + key[len(ROOT) - 1 :]).encode("utf-8", "surrogateescape")
        return transformer, DataContext(name, resource, self.metrics)

    def _find(self, short: str, longer: str) -> tuple[Transformer | None, str]:
        prefix, resource = short, self._resources.get(short)
        if resource is None:
            prefix, resource = longer, self._resources.get(longer)
        if resource is None:
            group, _, plural = longer[len(ROOT) :].rstrip("/").partition("/")
            if "." not in group or not plural:
                return None, ""
            resource = GroupResource(group, plural)
        way = self.encryption.transformer(resource), str(resource)
        self._ways[prefix] = way
        return way


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
        kv = await self.inner.get(key)
        return kv is not None and self.values.stale(kv)

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
                values.metrics.reloaded("failure")
                if str(error) != said:
                    said = str(error)
                    log.error("keeping the old encryption configuration: %s", said)
                continue
            said = ""
            values.use(encryption)
            values.metrics.reloaded("success")
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
