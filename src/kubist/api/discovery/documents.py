"""Discovery documents (groups, versions, resources), built from the served resources."""

from __future__ import annotations

from kubist.api.resources.resource import Resource, Resources, SubresourceInfo
from kubist.model.meta.api_versions import priority, storage_version_hash
from kubist.model.meta.object import Object

HASHED_AS = {
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"): "v1beta1",
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"): "v1beta1",
    ("apiextensions.k8s.io", "CustomResourceDefinition"): "v1beta1",
}
"""Kinds that the reference stores in another version than their preferred one, so that older releases can read them."""


def api_versions(address: str) -> Object:
    """`/api`."""
    addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}


def versions_of(name: str, resources: Resources) -> list[str]:
    """Versions of a group, the preferred one first."""
    found = resources.versions(name)
    return sorted(found, key=priority) if is_custom(name, resources) else found


def is_custom(name: str, resources: Resources) -> bool:
    return all(
        resource.custom
        for version in resources.versions(name)
        for resource in (resources.of(name, version) or {}).values()
    )


def group(name: str, resources: Resources) -> Object:
    versions = [
        {"groupVersion": f"{name}/{version}", "version": version} for version in versions_of(name, resources)
    ]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def group_names(resources: Resources) -> list[str]:
    """Groups in the order of `/apis`: built-in groups, then custom groups sorted by the APIService name of
    their preferred version."""
    names = list(dict.fromkeys(name for name, _ in resources.group_versions() if name))
    custom = [name for name in names if is_custom(name, resources)]
    custom.sort(key=lambda name: f"{versions_of(name, resources)[0]}.{name}")
    return [name for name in names if name not in custom] + custom


def api_group_list(resources: Resources) -> Object:
    """`/apis`."""
    groups = [group(name, resources) for name in group_names(resources)]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def api_group(name: str, resources: Resources) -> Object:
    """`/apis/<group>`."""
    return {"kind": "APIGroup", "apiVersion": "v1", **group(name, resources)}


def api_resource_list(name: str, version: str, served: dict[str, Resource]) -> Object:
    """`/api/v1` and `/apis/<group>/<version>`."""
    group_version = f"{name}/{version}" if name else version
    resources: list[Object] = []
    for resource in served.values():
        resources.append(_entry(resource))
        resources += [_subresource(resource, sub) for sub in resource.subresources.values()]
    document: Object = {"kind": "APIResourceList"}
    if name:
        document["apiVersion"] = "v1"
    return {**document, "groupVersion": group_version, "resources": resources}


def add_optional_names(entry: Object, resource: Resource) -> None:
    """Add the short names and categories of a resource to its discovery entry."""
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)


def _entry(resource: Resource) -> Object:
    entry: Object = {
        "name": resource.resource,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    add_optional_names(entry, resource)
    if "get" in resource.verbs and ("create" in resource.verbs or resource.custom):
        entry["storageVersionHash"] = resource.storage_version_hash or _stored(resource)
    return entry


def _stored(resource: Resource) -> str:
    group, _, version = resource.storage_version.rpartition("/")
    return storage_version_hash(group, HASHED_AS.get((group, resource.kind), version), resource.kind)


def _subresource(resource: Resource, sub: SubresourceInfo) -> Object:
    entry: Object = {
        "name": f"{resource.resource}/{sub.name}",
        "singularName": "",
        "namespaced": resource.namespaced,
    }
    if sub.version:
        entry |= {"group": sub.group, "version": sub.version} if sub.group else {"version": sub.version}
    return entry | {"kind": sub.kind, "verbs": list(sub.verbs)}
