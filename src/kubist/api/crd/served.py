"""The served form of a CRD: one resource for each served version, all on one collection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubist.api.crd import definition
from kubist.api.crd.conversion import Conversion
from kubist.api.crd.stored import CustomKind
from kubist.api.crd.strategy import CustomStrategy
from kubist.api.crd.version import Version
from kubist.api.resources.resource import Resource, SubresourceInfo
from kubist.model.meta.api_versions import priority, storage_version_hash
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.crd.webhook import Webhook


VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
TERMINATING_VERBS = ("delete", "deletecollection", "get", "list", "watch")


class Served:
    """A CRD as this server serves it. A new one replaces it when `identity` changes."""

    def __init__(self, crd: Object, webhook: Webhook | None, since: int = 0) -> None:
        self.name: str = crd["metadata"]["name"]
        self.uid: str = crd["metadata"].get("uid", "")
        self.crd = crd
        self.since = since
        """Revision at which the CRD was created, if this server was running then; else 0."""
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
        found: dict[str, str] = {}
        for resource in self.resources:
            found |= resource.strategy.selectable_fields(obj)
        return found

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
            custom=True,
            storage_version=f"{group}/{storage}",
            prefix=self.prefix,
            since=self.since,
            storage_version_hash=storage_version_hash(group, storage, spec["names"]["kind"]),
        )
        resource.strategy, resource.schema = strategy, version.applied
        return resource


def identity(crd: Object) -> tuple[Any, ...]:
    """The parts of a CRD that decide how it is served."""
    return (
        crd["metadata"].get("uid"),
        crd["spec"],
        (crd.get("status") or {}).get("acceptedNames"),
        definition.is_true(crd, "Terminating"),
    )


def _subresources(version: Version) -> dict[str, SubresourceInfo]:
    verbs = ("get", "patch", "update")
    found = {}
    if version.status:
        found["status"] = SubresourceInfo("status", version.kind, "", "", verbs)
    if version.scale is not None:
        found["scale"] = SubresourceInfo("scale", "Scale", "autoscaling", "v1", verbs)
    return found


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
