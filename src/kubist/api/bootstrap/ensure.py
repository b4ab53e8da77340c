"""Start-up: creates missing bootstrap objects, and updates the parts of existing ones that the server manages."""

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
"""(stored object, expected object) → object to write, or None to keep the stored object."""

_RBAC_AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"
_FLOW_AUTOUPDATE = "apf.kubernetes.io/autoupdate-spec"
_MANDATORY_FLOW = ("catch-all", "exempt")
_AUTOMANAGED = "kube-aggregator.kubernetes.io/automanaged"


async def ensure(registry: Registry, config: Config, *, endpoints: bool = True) -> None:
    """Creates and updates all objects concurrently, so that the writes share commits. With `endpoints`, existing
    endpoints of the service `kubernetes` are replaced by this server's address."""
    kinds = {(resource.api_version, resource.kind): resource for resource in registry.resources}
    writes = []
    for expected in objects(config):
        resource = kinds[expected["apiVersion"], expected["kind"]]
        metadata = expected["metadata"]
        namespace = metadata.get("namespace", "")
        current = registry.get(resource.resource, metadata["name"], namespace, group=resource.group)
        if current is None:
            writes.append(_create(registry, resource, namespace, expected))
            continue
        revise = _REVISE.get(expected["kind"])
        if revise is _revise_own_endpoints and not endpoints:
            continue
        if revise is not None and revise(current, expected) is not None:
            writes.append(_update(registry, resource, namespace, expected, revise))
    await asyncio.gather(*writes)


async def _create(registry: Registry, resource: Resource, namespace: str, obj: Object) -> None:
    """Writes the object directly to the store, because it is complete and the strategy of its kind need not be
    loaded."""
    key = resource.key(namespace, obj["metadata"]["name"])
    with contextlib.suppress(Conflict):  # another server created it first
        await registry.store.create(key, registry.kind(resource).encode(obj))


async def _update(
    registry: Registry, resource: Resource, namespace: str, expected: Object, revise: Revise
) -> None:
    await registry.mutate(
        resource.resource,
        expected["metadata"]["name"],
        namespace,
        lambda current: revise(current, expected),
        group=resource.group,
    )


def _merge_marks(current: Object, expected: Object) -> bool:
    """Adds missing labels and annotations. Returns whether any were missing."""
    missing = False
    for name in ("labels", "annotations"):
        there = current["metadata"].get(name) or {}
        merged = {**expected["metadata"].get(name, {}), **there}
        if merged != there:
            current["metadata"][name] = merged
            missing = True
    return missing


def _protected(current: Object) -> bool:
    return (current["metadata"].get("annotations") or {}).get(_RBAC_AUTOUPDATE) == "false"


def _revise_role(current: Object, expected: Object) -> Object | None:
    """Restores removed permissions and keeps additional ones, unless the annotation turns autoupdate off."""
    if _protected(current):
        return None
    changed = _merge_marks(current, expected)
    missing = uncovered(current.get("rules") or [], expected.get("rules") or [])
    if missing:
        current["rules"] = [*(current.get("rules") or []), *missing]
        changed = True
    if "aggregationRule" not in expected:
        changed |= current.pop("aggregationRule", None) is not None
    else:
        selectors = (current.get("aggregationRule") or {}).get("clusterRoleSelectors") or []
        absent = [s for s in expected["aggregationRule"]["clusterRoleSelectors"] if s not in selectors]
        if absent:
            current["aggregationRule"] = {"clusterRoleSelectors": [*selectors, *absent]}
            changed = True
    return current if changed else None


def _revise_binding(current: Object, expected: Object) -> Object | None:
    """Restores removed subjects and keeps additional ones. A binding to another role is replaced."""
    if _protected(current):
        return None
    if current["roleRef"] != expected["roleRef"]:
        return expected
    changed = _merge_marks(current, expected)
    subjects = current.get("subjects") or []
    missing = [subject for subject in expected.get("subjects", ()) if subject not in subjects]
    if missing:
        current["subjects"] = [*subjects, *missing]
        changed = True
    return current if changed else None


def _revise_flow(current: Object, expected: Object) -> Object | None:
    """Updates suggested configuration until a user edits it or turns autoupdate off. Mandatory configuration is
    always updated."""
    metadata = current["metadata"]
    said = (metadata.get("annotations") or {}).get(_FLOW_AUTOUPDATE, "").lower()
    follows = said in ("1", "t", "true") if said else metadata.get("generation") == 1
    if metadata["name"] in _MANDATORY_FLOW:
        follows = True
    changed = False
    spec = expected["spec"]
    if metadata["name"] == "exempt" and expected["kind"] == "PriorityLevelConfiguration":
        spec = {**spec, "exempt": current["spec"].get("exempt", spec["exempt"])}
    if follows and current["spec"] != spec:
        current["spec"] = spec
        metadata["generation"] = metadata.get("generation", 0) + 1
        changed = True
    mark = "true" if follows else "false"
    if said != mark:
        metadata["annotations"] = {**(metadata.get("annotations") or {}), _FLOW_AUTOUPDATE: mark}
        changed = True
    return current if changed else None


def _revise_api_service(current: Object, expected: Object) -> Object | None:
    managed = (current["metadata"].get("labels") or {}).get(_AUTOMANAGED)
    if managed not in ("true", "onstart") or current["spec"] == expected["spec"]:
        return None
    current["spec"] = expected["spec"]
    return current


def _revise_own_endpoints(current: Object, expected: Object) -> Object | None:
    """Sets the endpoints of the service `kubernetes` to this server's address."""
    names = ("subsets",) if expected["kind"] == "Endpoints" else ("endpoints", "ports")
    if all(current.get(name) == expected[name] for name in names):
        return None
    current.update((name, expected[name]) for name in names)
    if "generation" in current["metadata"]:
        current["metadata"]["generation"] += 1
    return current


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
