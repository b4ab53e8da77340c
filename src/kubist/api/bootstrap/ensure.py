"""Start-up: creates missing bootstrap objects, and updates existing ones as far as the server manages them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from kubist.api.bootstrap.objects import objects
from kubist.api.rbac import uncovered
from kubist.model.meta.object import Object
from kubist.storage.store import Conflict

if TYPE_CHECKING:
    from kubist.api.config import Config
    from kubist.api.object_store.registry import Registry
    from kubist.api.resources.resource import Resource

Revise = Callable[[Object, Object], Object | None]
"""(stored object, wanted object) → object to write, or None to keep the stored object."""

_RBAC_AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"
_FLOW_AUTOUPDATE = "apf.kubernetes.io/autoupdate-spec"
_MANDATORY_FLOW = ("catch-all", "exempt")
_AUTOMANAGED = "kube-aggregator.kubernetes.io/automanaged"


async def ensure(registry: Registry, config: Config, *, endpoints: bool = True) -> None:
    """Creates and updates all objects concurrently, so that the writes share commits. With `endpoints`, existing
    endpoints of the service `kubernetes` are replaced by this server's address."""
    kinds = {(resource.api_version, resource.kind): resource for resource in registry.resources}
    writes = []
    for wanted in objects(config):
        resource = kinds[wanted["apiVersion"], wanted["kind"]]
        metadata = wanted["metadata"]
        namespace = metadata.get("namespace", "")
        found = registry.get(resource.resource, metadata["name"], namespace, group=resource.group)
        if found is None:
            writes.append(_create(registry, resource, namespace, wanted))
            continue
        revise = _REVISE.get(wanted["kind"])
        if revise is _revise_own_endpoints and not endpoints:
            continue
        if revise is not None and revise(found, wanted) is not None:
            writes.append(_update(registry, resource, namespace, wanted, revise))
    await asyncio.gather(*writes)


async def _create(registry: Registry, resource: Resource, namespace: str, wanted: Object) -> None:
    """Writes the object directly to the store, because it is complete and the strategy of its kind need not be
    loaded."""
    key = resource.key(namespace, wanted["metadata"]["name"])
    with contextlib.suppress(Conflict):  # another server created it first
        await registry.store.create(key, registry.kind(resource).encode(wanted))


async def _update(
    registry: Registry, resource: Resource, namespace: str, wanted: Object, revise: Revise
) -> None:
    await registry.mutate(
        resource.resource,
        wanted["metadata"]["name"],
        namespace,
        lambda found: revise(found, wanted),
        group=resource.group,
    )


def _merge_marks(found: Object, wanted: Object) -> bool:
    """Adds missing labels and annotations. Returns whether any were missing."""
    missing = False
    for name in ("labels", "annotations"):
        there = found["metadata"].get(name) or {}
        merged = {**wanted["metadata"].get(name, {}), **there}
        if merged != there:
            found["metadata"][name] = merged
            missing = True
    return missing


def _protected(found: Object) -> bool:
    return (found["metadata"].get("annotations") or {}).get(_RBAC_AUTOUPDATE) == "false"


def _revise_role(found: Object, wanted: Object) -> Object | None:
    """Restores removed permissions and keeps additional ones, unless the annotation turns autoupdate off."""
    if _protected(found):
        return None
    changed = _merge_marks(found, wanted)
    missing = uncovered(found.get("rules") or [], wanted.get("rules") or [])
    if missing:
        found["rules"] = [*(found.get("rules") or []), *missing]
        changed = True
    if "aggregationRule" not in wanted:
        changed |= found.pop("aggregationRule", None) is not None
    else:
        selectors = (found.get("aggregationRule") or {}).get("clusterRoleSelectors") or []
        absent = [s for s in wanted["aggregationRule"]["clusterRoleSelectors"] if s not in selectors]
        if absent:
            found["aggregationRule"] = {"clusterRoleSelectors": [*selectors, *absent]}
            changed = True
    return found if changed else None


def _revise_binding(found: Object, wanted: Object) -> Object | None:
    """Restores removed subjects and keeps additional ones. A binding to another role is replaced."""
    if _protected(found):
        return None
    if found["roleRef"] != wanted["roleRef"]:
        return wanted
    changed = _merge_marks(found, wanted)
    subjects = found.get("subjects") or []
    missing = [subject for subject in wanted.get("subjects", ()) if subject not in subjects]
    if missing:
        found["subjects"] = [*subjects, *missing]
        changed = True
    return found if changed else None


def _revise_flow(found: Object, wanted: Object) -> Object | None:
    """Updates suggested configuration until a user edits it or turns autoupdate off. Mandatory configuration is
    always updated."""
    metadata = found["metadata"]
    said = (metadata.get("annotations") or {}).get(_FLOW_AUTOUPDATE, "").lower()
    follows = said in ("1", "t", "true") if said else metadata.get("generation") == 1
    if metadata["name"] in _MANDATORY_FLOW:
        follows = True
    changed = False
    spec = wanted["spec"]
    if metadata["name"] == "exempt" and wanted["kind"] == "PriorityLevelConfiguration":
        spec = {**spec, "exempt": found["spec"].get("exempt", spec["exempt"])}
    if follows and found["spec"] != spec:
        found["spec"] = spec
        metadata["generation"] = metadata.get("generation", 0) + 1
        changed = True
    mark = "true" if follows else "false"
    if said != mark:
        metadata["annotations"] = {**(metadata.get("annotations") or {}), _FLOW_AUTOUPDATE: mark}
        changed = True
    return found if changed else None


def _revise_api_service(found: Object, wanted: Object) -> Object | None:
    managed = (found["metadata"].get("labels") or {}).get(_AUTOMANAGED)
    if managed not in ("true", "onstart") or found["spec"] == wanted["spec"]:
        return None
    found["spec"] = wanted["spec"]
    return found


def _revise_own_endpoints(found: Object, wanted: Object) -> Object | None:
    """Sets the endpoints of the service `kubernetes` to this server's address."""
    names = ("subsets",) if wanted["kind"] == "Endpoints" else ("endpoints", "ports")
    if all(found.get(name) == wanted[name] for name in names):
        return None
    found.update((name, wanted[name]) for name in names)
    if "generation" in found["metadata"]:
        found["metadata"]["generation"] += 1
    return found


_REVISE: dict[str, Revise] = {
    "APIService": _revise_api_service,
    "ClusterRole": _revise_role,
    "ClusterRoleBinding": _revise_binding,
    "EndpointSlice": _revise_own_endpoints,
    "Endpoints": _revise_own_endpoints,
    "FlowSchema": _revise_flow,
    "PriorityLevelConfiguration": _revise_flow,
    "Role": _revise_role,
    "RoleBinding": _revise_binding,
}
