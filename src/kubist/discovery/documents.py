"""Discovery documents: which groups, versions and resources there are. Built from the served resources."""

from __future__ import annotations

import base64
import functools
import hashlib
from typing import Any

from kubist.resources import Resource, Resources

Object = dict[str, Any]


@functools.lru_cache(maxsize=4096)
def storage_version_hash(group: str, version: str, kind: str) -> str:
    """How clients tell that the stored version of a kind has changed."""
    digest = hashlib.sha256(f"{group}/{version}/{kind}".encode()).digest()
    return base64.b64encode(digest[:8]).decode()


def api_versions(address: str) -> Object:
    """`/api`."""
    addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}


def group(name: str, resources: Resources) -> Object:
    versions = [
        {"groupVersion": f"{name}/{version}", "version": version} for version in resources.versions(name)
    ]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def group_names(resources: Resources) -> list[str]:
    return list(dict.fromkeys(name for name, _ in resources.group_versions() if name))


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
        resources += _subresources(resource)
    document: Object = {"kind": "APIResourceList"}
    if name:
        document["apiVersion"] = "v1"
    return {**document, "groupVersion": group_version, "resources": resources}


def _entry(resource: Resource) -> Object:
    entry: Object = {
        "name": resource.resource,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if "get" in resource.verbs and ("create" in resource.verbs or resource.custom):
        stored_group, _, stored_version = resource.storage_version.rpartition("/")
        entry["storageVersionHash"] = resource.storage_version_hash or storage_version_hash(
            stored_group, stored_version, resource.kind
        )
    return entry


def _subresources(resource: Resource) -> list[Object]:
    entries = []
    for sub in resource.subresources.values():
        entry: Object = {
            "name": f"{resource.resource}/{sub.name}",
            "singularName": "",
            "namespaced": resource.namespaced,
        }
        if sub.version:
            entry |= {"group": sub.group, "version": sub.version} if sub.group else {"version": sub.version}
        entry |= {"kind": sub.kind, "verbs": list(sub.verbs)}
        entries.append(entry)
    return entries
