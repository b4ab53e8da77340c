"""URL paths of resources and objects."""

from __future__ import annotations

from urllib.parse import quote

from kubist.api.resources.resource import Resource


def path_of(resource: Resource, namespace: str | None, name: str = "") -> str:
    """URL path of a resource, or of one object. Without a namespace, that of the resource in all namespaces."""
    root = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
    scope = (
        f"/namespaces/{quote(namespace, safe=':')}" if resource.namespaced and namespace is not None else ""
    )
    return f"{root}{scope}/{resource.resource}" + (f"/{quote(name, safe=':')}" if name else "")
