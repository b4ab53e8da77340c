"""The served form of a CRD: one resource for each served version, all on one collection; its objects in the store."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import orjson

from kubist.api.crd import definition
from kubist.api.crd.conversion import Conversion
from kubist.api.crd.strategy import CustomStrategy
from kubist.api.crd.version import Version
from kubist.api.resources.resource import Resource, SubresourceInfo
from kubist.model.meta.api_versions import priority, storage_version_hash
from kubist.model.meta.numerals import canonical, odd_number
from kubist.model.meta.object import Object
from kubist.storage.cache.cache import Entry, StoredKind

if TYPE_CHECKING:
    from kubist.api.crd.webhook import Webhook


VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
TERMINATING_VERBS = ("delete", "deletecollection", "get", "list", "watch")


class Served:
    """A CRD as this server serves it. It is replaced when `identity` changes."""

    def __init__(self, crd: Object, webhook: Webhook | None, since: int = 0) -> None:
        self.name: str = crd["metadata"]["name"]
        self.uid: str = crd["metadata"].get("uid", "")
        self.crd = crd
        self.since = since
        """Revision at which the CRD was created if this server was running then, otherwise 0."""
        self.identity = identity(crd)
        self.terminating = definition.is_true(crd, "Terminating")
        group, names = crd["spec"]["group"], crd["status"]["acceptedNames"]
        self.prefix = f"/registry/{group}/{names['plural']}/"
        self.versions = {f"{group}/{spec['name']}": Version(crd, spec) for spec in definition.versions(crd)}
        self.conversion = Conversion(self.versions, webhook)
        self.resources = [self._resource(version) for version in self.versions.values() if version.served]
        stored = next(version for version in self.versions.values() if version.storage)
        self.kind = CustomKind(self.prefix, stored, self.versions, self._fields)

    def _fields(self, obj: Object) -> dict[str, str]:
        """Selectable fields of all served versions. Without a webhook, a field has the same value in each version."""
        fields: dict[str, str] = {}
        for resource in self.resources:
            fields |= resource.strategy.selectable_fields(obj)
        return fields

    def _resource(self, version: Version) -> Resource:
        crd = self.crd
        spec, names = crd["spec"], crd["status"]["acceptedNames"]
        group = spec["group"]
        namespaced = spec["scope"] == "Namespaced"
        storage = definition.storage_version(crd)
        strategy = CustomStrategy(
            version,
            self.conversion,
            terminating=self.terminating,
            namespaced=namespaced,
            deprecation=deprecation(crd, version.spec),
        )
        resource = Resource(
            group=group,
            version=version.name,
            resource=names["plural"],
            kind=names["kind"],
            singular=names["singular"],
            namespaced=namespaced,
            verbs=TERMINATING_VERBS if self.terminating else VERBS,
            short_names=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            subresources=_subresources(version),
            preferred=False,
            list_kind=names["listKind"],
            custom=strategy,
            storage_version=f"{group}/{storage}",
            prefix=self.prefix,
            since=self.since,
            storage_version_hash=storage_version_hash(group, storage, spec["names"]["kind"]),
        )
        resource.strategy, resource.schema = strategy, version.applied
        return resource


def identity(crd: Object) -> tuple[Any, ...]:
    """The parts of a CRD that affect how it is served."""
    return (
        crd["metadata"].get("uid"),
        crd["spec"],
        (crd.get("status") or {}).get("acceptedNames"),
        definition.is_true(crd, "Terminating"),
    )


def _subresources(version: Version) -> dict[str, SubresourceInfo]:
    verbs = ("get", "patch", "update")
    subresources = {}
    if version.status:
        subresources["status"] = SubresourceInfo("status", version.kind, "", "", verbs)
    if version.scale is not None:
        subresources["scale"] = SubresourceInfo("scale", "Scale", "autoscaling", "v1", verbs)
    return subresources


def deprecation(crd: Object, version: Object) -> str:
    """Warning header text for requests to a deprecated version; empty if the version is not deprecated."""
    if not version.get("deprecated"):
        return ""
    if version.get("deprecationWarning") is not None:
        return str(version["deprecationWarning"])
    group, kind = crd["spec"]["group"], crd["spec"]["names"]["kind"]
    text = f"{group}/{version['name']} {kind} is deprecated"
    mine = priority(version["name"])
    newer = [
        other["name"]
        for other in definition.versions(crd)
        if other.get("served") and not other.get("deprecated") and priority(other["name"]) < mine
    ]
    if newer:
        text += f"; use {group}/{min(newer, key=priority)} {kind}"
    return text


_RECENT = 128
_LARGE = 1 << 16
"""Size in bytes. A larger value evicts all other remembered values, so that they never take many megabytes."""


class CustomKind(StoredKind):
    """Storage form of a custom resource: decodes and encodes the cache's entries. An object keeps the version in which
    it was written. An object that was stored under an older schema is pruned and defaulted when it is read."""

    __slots__ = ("_kinds", "_recent", "versions")

    def __init__(self, prefix: str, storage: Version, versions: dict[str, Version], fields: Any) -> None:
        super().__init__(prefix, storage.api_version, storage.kind, fields, orjson.loads)
        self.versions = versions
        self._kinds: dict[str, StoredKind] = {storage.api_version: self}
        self._recent: OrderedDict[bytes, None] = OrderedDict()
        """The last 128 values that this process wrote. They need no pruning or defaulting when the store's watch
        delivers them."""

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
        """An entry with the same bytes and this server's kind, because a kind refers to the CRD of its server."""
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
        stored_kind = self._kinds.get(api_version)
        if stored_kind is None:
            stored_kind = StoredKind(self.prefix, api_version, kind, self.fields, self.normalize)
            self._kinds[api_version] = stored_kind
        return stored_kind
