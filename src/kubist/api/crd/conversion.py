"""Conversion of custom resources between versions: strategy None changes only apiVersion, strategy Webhook
calls a webhook.

Both prune by the schema of the target version. Neither applies that version's defaults.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from kubist.model.meta import status
from kubist.model.meta.object import Object
from kubist.storage.cache.cache import Entry, StoredKind

if TYPE_CHECKING:
    from kubist.api.crd.version import Version
    from kubist.api.crd.webhook import Webhook


class Conversion:
    """Converts between the versions of one CRD."""

    def __init__(self, versions: dict[str, Version], webhook: Webhook | None = None) -> None:
        self.versions = versions
        """All versions of the CRD by apiVersion, served or not."""
        self.webhook = webhook
        self._kinds: dict[str, StoredKind] = {}

    def convert(self, obj: Object, api_version: str) -> Object:
        """Converts `obj` in place with strategy None. The caller must not use it when the CRD has a webhook."""
        version = self._target_version(obj, api_version)
        if version is None:
            return obj
        obj["apiVersion"] = api_version
        version.coerce(obj)
        return obj

    def _target_version(self, obj: Object, api_version: str) -> Version | None:
        """The version to convert to, or None if the object already has that version. Raises a 500 error unless the CRD
        lists both versions."""
        current = obj.get("apiVersion", "")
        if current == api_version:
            return None
        if current not in self.versions or api_version not in self.versions:
            unknown = current if current not in self.versions else api_version
            raise status.plain_error(
                f"request to convert CR from an invalid group/version: {unknown}"
                if unknown == current
                else f"request to convert CR to an invalid group/version: {unknown}"
            )
        return self.versions[api_version]

    def seen(self, entry: Entry, api_version: str) -> Entry:
        """The cached conversion of a stored object, or the stored entry itself if it was never converted."""
        converted_entry: Entry | None = (entry.reps or {}).get(("version", self, api_version))
        return entry if converted_entry is None else converted_entry

    async def entry(self, entry: Entry, api_version: str) -> Entry:
        """The stored object in another version. The result is cached on the entry."""
        if entry.kind.api_version == api_version:
            return entry
        if entry.reps is None:
            entry.reps = {}
        key = ("version", self, api_version)
        converted_entry: Entry | None = entry.reps.get(key)
        if converted_entry is None:
            obj = await self.converted(entry.object(), api_version)
            kind = self._kinds.get(api_version)
            if kind is None:
                home = entry.kind
                kind = StoredKind(home.prefix, api_version, obj["kind"], home.fields, home.normalize)
                self._kinds[api_version] = kind
            converted_entry = StoredKind.entry(kind, entry.key, StoredKind.encode(kind, obj), entry.revision)
            entry.reps[key] = converted_entry
        return converted_entry

    async def to_stored_version(self, obj: Object, storage_version: str) -> Object:
        """A converted copy of `obj`, ready to be stored. `obj` is not changed."""
        return await self.converted(orjson.loads(orjson.dumps(obj)), storage_version)

    async def read_back(self, obj: Object, storage_version: str) -> Object:
        """`obj` as a read after the write would return it: in the stored version and with its defaults, then in
        the version of `obj` again. May change `obj`."""
        api_version = obj["apiVersion"]
        stored = await self.converted(obj, storage_version)
        self.versions[storage_version].default(stored)
        return await self.converted(stored, api_version)

    async def converted(self, obj: Object, api_version: str) -> Object:
        """Converts `obj`, by webhook if the CRD has one. May change `obj`."""
        version = self._target_version(obj, api_version)
        if version is None:
            return obj
        if self.webhook is None:
            return self.convert(obj, api_version)
        answer = await self.webhook.convert(obj, api_version)
        version.coerce(answer)
        return answer
