"""Objects of one version as another: by changing the version's name alone, or by asking a webhook.

Pruning by the schema of the wanted version follows either way; defaults of that version do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from kubist.meta import status
from kubist.storage.cache import Entry, StoredKind

if TYPE_CHECKING:
    from kubist.crd.version import Version
    from kubist.crd.webhook import Webhook

Object = dict[str, Any]


class Conversion:
    """How the versions of one definition become each other."""

    def __init__(self, versions: dict[str, Version], webhook: Webhook | None = None) -> None:
        self.versions = versions
        """By apiVersion: all that the definition lists, served or not."""
        self.webhook = webhook
        self._kinds: dict[str, StoredKind] = {}

    def convert(self, obj: Object, api_version: str) -> Object:
        """`obj`, taken over, in another version; only where no webhook is needed."""
        wanted = self._wanted(obj, api_version)
        if wanted is None:
            return obj
        obj["apiVersion"] = api_version
        wanted.coerce(obj)
        return obj

    def _wanted(self, obj: Object, api_version: str) -> Version | None:
        """The version to convert to; None if the object is of that version already."""
        given = obj.get("apiVersion", "")
        if given == api_version:
            return None
        if given not in self.versions or api_version not in self.versions:
            unknown = given if given not in self.versions else api_version
            raise status.plain_error(
                f"request to convert CR from an invalid group/version: {unknown}"
                if unknown == given
                else f"request to convert CR to an invalid group/version: {unknown}"
            )
        return self.versions[api_version]

    def seen(self, entry: Entry, api_version: str) -> Entry:
        """A stored object as it was converted before; as it is stored if it never was."""
        found: Entry | None = (entry.reps or {}).get(("version", self, api_version))
        return entry if found is None else found

    async def entry(self, entry: Entry, api_version: str) -> Entry:
        """A stored object as an entry of another version, made once."""
        if entry.kind.api_version == api_version:
            return entry
        if entry.reps is None:
            entry.reps = {}
        key = ("version", self, api_version)
        found: Entry | None = entry.reps.get(key)
        if found is None:
            obj = await self.converted(entry.object(), api_version)
            kind = self._kinds.get(api_version)
            if kind is None:
                held = entry.kind
                kind = StoredKind(held.prefix, api_version, obj["kind"], held.fields, held.normalize)
                self._kinds[api_version] = kind
            found = StoredKind.entry(kind, entry.key, StoredKind.encode(kind, obj), entry.revision)
            entry.reps[key] = found
        return found

    async def closed(self, obj: Object, storage_version: str) -> Object:
        """An object of any version as it is to be stored. The object itself stays as it is."""
        return await self.converted(orjson.loads(orjson.dumps(obj)), storage_version)

    async def converted(self, obj: Object, api_version: str) -> Object:
        """`obj` in another version, by whatever means."""
        wanted = self._wanted(obj, api_version)
        if wanted is None:
            return obj
        if self.webhook is None:
            return self.convert(obj, api_version)
        answer = await self.webhook.convert(obj, api_version)
        wanted.coerce(answer)
        return answer
