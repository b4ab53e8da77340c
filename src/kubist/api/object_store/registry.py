"""Registry: objects of a server. Reads use the collections of the cache; writes use compare-and-swap.

The verbs write through `insert`, `replace` and `remove`. Kinds, admission plugins and control loops use the
rest as `kubist.api.resources.context.Objects`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import orjson

from kubist.api.resources.resource import Resource, Resources
from kubist.model.codec import protobuf
from kubist.model.meta import status
from kubist.model.meta.object import Object
from kubist.model.schema.catalog import is_builtin, schema_for
from kubist.model.schema.decode import decode
from kubist.model.schema.leaves import KEEP_EMPTY
from kubist.model.schema.node import Schema
from kubist.model.schema.older import SERVED_AS
from kubist.storage.cache.cache import Cache, Collection, Entry, StoredKind
from kubist.storage.encryption.unreadable import reason
from kubist.storage.store import Conflict, Store, Unavailable

if TYPE_CHECKING:
    from kubist.api.config import Config
    from kubist.storage.encryption.store import EncryptedStore


VALUE_LIMIT = 1_572_864
"""Maximum size of a value: 1.5 MiB, as in etcd."""


class Registry:
    """Objects of every served resource on one store."""

    def __init__(self, config: Config, resources: Resources, store: Store) -> None:
        self.config = config
        self.resources = resources
        self.store = store
        self.encrypted: EncryptedStore | None = None
        """The same store if values are encrypted at rest, otherwise None."""
        self.cache = Cache(store)
        self._kinds: dict[str, StoredKind] = {}
        self._collections: dict[str, Collection] = {}

    async def start(self) -> None:
        await self.cache.start(self.kind(resource) for resource in self.resources if stored(resource))

    async def stop(self) -> None:
        await self.cache.stop()

    def kind(self, resource: Resource) -> StoredKind:
        stored_kind = self._kinds.get(resource.prefix)
        if stored_kind is None:
            group = resource.storage_version.rpartition("/")[0]
            home = self.resources.stored(group, resource.resource) or resource

            def fields(obj: Object) -> dict[str, str]:
                return home.strategy.selectable_fields(obj)

            # Forks share entries, and an entry refers to its kind. A reference to the resources would keep a stopped
            # server in memory.
            served = weakref.ref(self.resources)

            def normalize(value: bytes) -> Object:
                resources = served()
                assert resources is not None
                return _read_foreign(resources, home, value)

            stored_kind = StoredKind(home.prefix, home.storage_version, home.kind, fields, normalize)
            self._kinds[resource.prefix] = stored_kind
        return stored_kind

    def adopt(self, prefix: str, kind: StoredKind) -> None:
        """Adds a custom resource, or replaces the decoding of its objects after its CRD changed."""
        if self._kinds.get(prefix) is not kind:
            self.release(prefix)
            self._kinds[prefix] = kind

    def release(self, prefix: str) -> None:
        """Removes a custom resource."""
        self._kinds.pop(prefix, None)
        self._collections.pop(prefix, None)
        self.cache.forget(prefix)

    def collection(self, resource: Resource) -> Collection:
        collection = self._collections.get(resource.prefix)
        if collection is None:
            collection = self._collections[resource.prefix] = self.cache.collection(self.kind(resource))
        return collection

    async def read(self, resource: Resource, namespace: str, name: str) -> Entry | None:
        """Newest version of an object. Waits until the cache is at the store's revision. None if it does not exist."""
        collection = self.collection(resource)
        if not collection.loaded:
            await collection.ready()
        newest = await self.store.revision()
        if newest > self.cache.revision:
            await self.cache.reach(newest)
        key = resource.key(namespace, name)
        entry = collection.get(key)
        if entry is None and key in collection.unreadable:
            raise status.internal_error(collection.unreadable[key].reason)
        return entry

    def readable(self, collection: Collection, prefix: str, start: str = "") -> None:
        """Raises a 500 if an object in the range is unreadable, because a list must be complete."""
        for key in sorted(collection.unreadable):
            if key.startswith(prefix) and key >= start:
                stored = "/" + self.config.etcd_prefix.strip("/") + key[len("/registry") :]
                why = collection.unreadable[key].reason
                raise status.internal_error(f'unable to transform key "{stored}": {why}')

    async def insert(self, resource: Resource, namespace: str, obj: Object) -> Entry:
        name = obj["metadata"]["name"]
        key = resource.key(namespace, name)
        kind = self.kind(resource)
        value = self._encoded(kind, obj)
        try:
            revision = await self.store.create(key, value, ttl=self._ttl(resource))
        except Conflict:
            raise status.already_exists(resource.group, resource.resource, name) from None
        except Unavailable as error:
            raise status.unavailable(str(error)) from None
        return self._written(resource, kind, key, value, revision)

    async def replace(self, resource: Resource, entry: Entry, obj: Object) -> Entry | None:
        """Writes a new version if `entry` is the newest one. Otherwise None. An unchanged object is not written."""
        kind = self.kind(resource)
        value = self._encoded(kind, obj)
        if kind.written(entry, value) and not await self.stale(entry):
            return entry
        try:
            revision = await self.store.update(entry.key, value, entry.revision, ttl=self._ttl(resource))
        except Conflict:
            return None
        except Unavailable as error:
            raise status.unavailable(str(error)) from None
        return self._written(resource, kind, entry.key, value, revision)

    def _written(self, resource: Resource, kind: StoredKind, key: str, value: bytes, revision: int) -> Entry:
        """Entry of the written value: the entry of the cache if the cache already has this revision."""
        collection = self.collection(resource)
        entry = collection.get(key)
        if entry is not None and entry.revision == revision and collection.kind is kind:
            return entry
        return kind.entry(key, value, revision)

    async def stale(self, entry: Entry) -> bool:
        """Whether an unchanged object must be written again, because its storage format or encryption is outdated."""
        if entry.foreign:
            return True
        return self.encrypted is not None and await self.encrypted.stale(entry.key)

    async def remove(self, entry: Entry) -> int | None:
        """Deletes the object if `entry` is the newest version, and returns the revision of the deletion.
        Otherwise None."""
        try:
            return await self.store.delete(entry.key, entry.revision)
        except Conflict:
            return None
        except Unavailable as error:
            raise status.unavailable(str(error)) from None

    async def refresh(self, resource: Resource, key: str) -> Entry | None:
        """Newest version from the store, after a lost compare-and-swap."""
        record = await self.store.get(key)
        if record is None:
            return None
        try:
            return self.kind(resource).entry(key, record.value, record.mod_revision)
        except Exception as error:
            raise status.internal_error(reason(record.value, error)) from None

    def _encoded(self, kind: StoredKind, obj: Object) -> bytes:
        try:
            value = kind.encode(obj)
        except orjson.JSONEncodeError as error:
            if "Recursion" not in str(error):
                raise
            raise status.bad_request("exceeded max depth") from None
        if len(value) > VALUE_LIMIT:
            raise status.plain_error("etcdserver: request is too large")
        return value

    def _ttl(self, resource: Resource) -> int:
        flag = resource.strategy.ttl_flag
        return int(getattr(self.config, flag)) if flag else 0

    def lifetimes(self) -> dict[str, int]:
        """Key prefixes of the resources whose objects expire, with their time to live in seconds."""
        return {each.prefix: seconds for each in self.resources if (seconds := self._ttl(each))}

    def _stored(self, group: str, resource: str) -> Resource:
        home = self.resources.stored(group, resource)
        if home is None:
            raise KeyError(f"{resource}.{group} is not served")
        return home

    def get(self, resource: str, name: str, namespace: str = "", *, group: str = "") -> Object | None:
        home = self._stored(group, resource)
        entry = self.collection(home).get(home.key(namespace, name))
        return entry.object() if entry is not None else None

    def list(self, resource: str, namespace: str | None = "", *, group: str = "") -> Iterator[Object]:
        home = self._stored(group, resource)
        prefix = f"{home.prefix}{namespace}/" if namespace and home.namespaced else home.prefix
        for entry in list(self.collection(home).below(prefix)):
            yield entry.object()

    async def mutate(
        self,
        resource: str,
        name: str,
        namespace: str,
        change: Callable[[Object], Object | None],
        *,
        group: str = "",
    ) -> Object:
        home = self._stored(group, resource)
        entry = await self.read(home, namespace, name)
        while entry is not None:
            obj = entry.object()
            changed = change(obj)
            if changed is None:
                return obj
            written = await self.replace(home, entry, changed)
            if written is not None:
                return written.object()
            entry = await self.refresh(home, entry.key)
        raise status.not_found(group, resource, name)


def stored(resource: Resource) -> bool:
    """Whether objects of the resource are stored. Review resources such as TokenReview are not."""
    return "get" in resource.verbs and "create" in resource.verbs


_PROTOBUF = b"k8s\0"


def _read_foreign(resources: Resources, home: Resource, value: bytes) -> Object:
    """Decodes a stored value that this version of Kubist did not write, like kube-apiserver. The object is in the
    storage version of its kind.

    A value is JSON or protobuf, in any version of its kind. It gets the defaults of its version and is then converted
    to the storage version. An object stored without a default, by another server or an older version, is therefore read
    with the default."""
    if value.startswith(_PROTOBUF):
        api_version, kind, raw = protobuf.unwrap(value)
        api_version = SERVED_AS.get(f"{api_version}/{kind}", api_version)
        return _completed(resources, home, api_version, protobuf.decode(_schema(api_version, kind), raw))
    parsed: Object = orjson.loads(value)
    kind = str(parsed["kind"])
    api_version = SERVED_AS.get(f"{parsed['apiVersion']}/{kind}", str(parsed["apiVersion"]))
    group, _, version = api_version.rpartition("/")
    if not is_builtin(group, version, kind):
        # A version that only the kind's strategy knows, such as v1beta1 of a CRD.
        parsed = home.strategy.convert(parsed, home.storage_version)
        api_version = home.storage_version
    return _completed(resources, home, api_version, decode(_schema(api_version, kind), parsed, [KEEP_EMPTY]))


def _completed(resources: Resources, home: Resource, api_version: str, decoded: Object) -> Object:
    """Decoded object with defaults, in the storage version."""
    for name in ("kind", "apiVersion"):
        decoded.pop(name, None)
    metadata = decoded.pop("metadata", None) or {}
    obj: Object = {"kind": home.kind, "apiVersion": api_version, "metadata": metadata, **decoded}
    group, _, version = api_version.rpartition("/")
    source = (resources.of(group, version) or {}).get(home.resource, home)
    source.strategy.default(obj)
    if api_version != home.storage_version:
        obj = source.strategy.convert(obj, home.storage_version)
    home.strategy.default_stored(obj)
    return obj


def _schema(api_version: str, kind: str) -> Schema:
    group, _, version = api_version.rpartition("/")
    return schema_for(group, version, kind)
