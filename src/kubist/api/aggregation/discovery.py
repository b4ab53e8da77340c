"""Discovery documents of backends: groups from APIServices, resources from the backend's APIResourceList."""

from __future__ import annotations

from kubist.model.meta.api_versions import priority
from kubist.model.meta.object import Object


def api_group(name: str, registered: list[Object]) -> Object:
    """APIGroup from the specs of its APIServices. Versions are sorted by versionPriority, then by version name."""
    ordered = sorted(
        registered, key=lambda spec: (-spec.get("versionPriority", 0), priority(spec["version"]))
    )
    versions = [{"groupVersion": f"{name}/{spec['version']}", "version": spec["version"]} for spec in ordered]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def version_discovery(group: str, version: str, document: Object | None, current: bool) -> Object:
    """A version for aggregated discovery, from the last APIResourceList of its backend. Stale if not `current`."""
    resources: dict[str, Object] = {}
    subresources: list[tuple[str, Object]] = []
    for entry in (document or {}).get("resources") or ():
        name, _, sub = entry.get("name", "").partition("/")
        kind = {
            "group": entry.get("group") or group,
            "version": entry.get("version") or version,
            "kind": entry.get("kind", ""),
        }
        verbs = list(entry.get("verbs") or ())
        if sub:
            subresources.append((name, {"subresource": sub, "responseKind": kind, "verbs": verbs}))
            continue
        resources[name] = {
            "resource": name,
            "responseKind": kind,
            "scope": "Namespaced" if entry.get("namespaced") else "Cluster",
            "singularResource": entry.get("singularName", ""),
            "verbs": verbs,
            **{key: entry[key] for key in ("shortNames", "categories") if entry.get(key)},
        }
    for name, found in subresources:
        if name in resources:
            resources[name].setdefault("subresources", []).append(found)
    freshness = "Current" if current else "Stale"
    return {"version": version, "resources": list(resources.values()), "freshness": freshness}
