"""Custom resources in the store: an object keeps the version in which it was written.

An object that was stored under an older schema is pruned and defaulted when it is read.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import orjson

from kubist.api.crd.version import Version
from kubist.model.meta.numerals import canonical, odd_number
from kubist.model.meta.object import Object
from kubist.storage.cache.cache import Entry, StoredKind

_RECENT = 128
_LARGE = 1 << 16
"""Size in bytes. Remembering a larger value drops all other remembered values, so that they never take many
megabytes."""


class CustomKind(StoredKind):
    """Storage form of a custom resource: decodes and encodes the cache's entries."""

    __slots__ = ("_kinds", "_recent", "versions")

    def __init__(self, prefix: str, storage: Version, versions: dict[str, Version], fields: Any) -> None:
        super().__init__(prefix, storage.api_version, storage.kind, fields, orjson.loads)
        self.versions = versions
        self._kinds: dict[str, StoredKind] = {storage.api_version: self}
        self._recent: OrderedDict[bytes, None] = OrderedDict()
        """The last 128 values that this process wrote. They need no pruning or defaulting when the watch of
        the store delivers them."""

    def encode(self, obj: Object) -> bytes:
        value = super().encode(obj)
        if odd_number(value):
            obj = canonical(obj)
            value = super().encode(obj)
        self.versions[self.api_version].default(obj)
        if super().encode(obj) != value:
            return value  # readers see defaults that the stored value does not have
        if len(value) > _LARGE:
            self._recent.clear()
        self._recent[value] = None
        if len(self._recent) > _RECENT:
            self._recent.popitem(last=False)
        return value

    def entry(self, key: str, value: bytes, revision: int) -> Entry:
        if value in self._recent:
            return super().entry(key, value, revision)
        obj = orjson.loads(value)
        api_version = obj.get("apiVersion", "")
        self._read(obj, api_version)
        kind = self._kind(api_version, obj.get("kind", ""))
        return StoredKind.entry(kind, key, StoredKind.encode(kind, obj), revision)

    shares_entries = False

    def adopt(self, entry: Entry) -> Entry:
        """The same bytes with a kind of this server, because a kind refers to the CRD of its server."""
        name = self.versions[self.api_version].kind
        made = type(entry)(entry.key, entry.revision, entry.tail, self._kind(entry.kind.api_version, name))
        made.share_selectable(entry)
        return made

    def removed_versions(self) -> frozenset[str]:
        return frozenset(self._kinds.keys() - self.versions.keys())

    def _read(self, obj: Object, api_version: str) -> None:
        version = self.versions.get(api_version)
        obj.setdefault("metadata", {})
        if version is None:
            return
        version.coerce(obj, lenient=True)
        version.default(obj)
        obj["metadata"].setdefault("generation", 1)

    def _kind(self, api_version: str, kind: str) -> StoredKind:
        found = self._kinds.get(api_version)
        if found is None:
            found = StoredKind(self.prefix, api_version, kind, self.fields, self.normalize)
            self._kinds[api_version] = found
        return found
