"""Routes of a resource: its paths and methods. An unknown path is 404, an unsupported method 405.

Custom resources have rules of their own, as in kube-apiserver.
"""

from __future__ import annotations

import functools
from collections.abc import Set as AbstractSet

from kubist.api.request import RequestInfo
from kubist.api.resources.resource import Resource
from kubist.base.jsontext.quoting import quoted
from kubist.model.meta import status
from kubist.model.meta.names import path_segment

OBJECT_ROUTE = (("GET", "get"), ("PUT", "update"), ("PATCH", "patch"), ("DELETE", "delete"))
SUBRESOURCE_ROUTE = (*OBJECT_ROUTE, ("POST", "create"))
PROXIED = frozenset(("HEAD", "OPTIONS"))
"""Methods that a proxy forwards although they have no verb."""
COLLECTION_ROUTE = (("GET", "list"), ("POST", "create"), ("DELETE", "deletecollection"))
ACROSS_NAMESPACES = ("list", "watch")
CUSTOM_VERBS = frozenset(("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"))
CUSTOM_SUBRESOURCE_VERBS = ("get", "update", "patch")


def check(info: RequestInfo, resource: Resource, method: str) -> None:
    """Rejects a request that matches no route of the resource, or whose name is not a valid path segment."""
    if info.verb == "proxy":
        raise status.no_such_path()
    parts = info.parts[1:] if info.watch_path else info.parts
    scoped = parts[0] == "namespaces" and len(parts) > 2 and parts[2] not in ("status", "finalize")
    below = parts[2:] if scoped else parts
    if len(below) > 1 and below[-1] == "":
        below = below[:-1]
    methods = _methods(resource, scoped, below)
    if info.watch_path:
        methods = {"GET"} if methods and "watch" in resource.verbs and len(below) < 3 else set()
    if not methods:
        raise status.no_such_path()
    if method not in methods:
        raise status.method_not_allowed()
    if len(below) > 2 and not below[1]:
        raise status.bad_request("name must be provided")
    if len(below) > 1 and (wrong := path_segment(below[1])):
        raise status.bad_request(f"Name parameter invalid: {quoted(below[1])}: {';'.join(wrong)}")


def _methods(resource: Resource, scoped: bool, below: tuple[str, ...]) -> AbstractSet[str]:
    """Methods of a path, empty if the path does not exist. `below` are the path's parts from the resource on."""
    if scoped and not resource.namespaced:
        return set()
    if len(below) == 1:
        if resource.namespaced and not scoped:
            return {"GET"} if "list" in resource.verbs else set()
        return _served(COLLECTION_ROUTE, resource.verbs)
    if resource.namespaced and not scoped:
        return set()
    if len(below) == 2:
        return _served(OBJECT_ROUTE, resource.verbs)
    subresource = resource.subresources.get(below[2])
    if subresource is None or (len(below) > 3 and subresource.name != "proxy"):
        return set()
    served = _served(SUBRESOURCE_ROUTE, subresource.verbs)
    return served | PROXIED if subresource.name == "proxy" else served


@functools.cache
def _served(route: tuple[tuple[str, str], ...], verbs: tuple[str, ...]) -> frozenset[str]:
    return frozenset(method for method, verb in route if verb in verbs)


def in_custom_scope(info: RequestInfo, resource: Resource) -> bool:
    """Whether the request path fits the scope of this custom resource. Only list and watch work across namespaces. The
    deprecated proxy paths do not exist."""
    scoped = bool(info.namespace)
    if scoped and not resource.namespaced:
        return False
    if resource.namespaced and not scoped and info.verb not in ACROSS_NAMESPACES:
        return False
    return info.verb != "proxy"


def check_custom(info: RequestInfo, resource: Resource) -> None:
    """Rejects updates and patches without a name, unknown subresources, verbs that a subresource does not have, and
    methods without a verb. An unknown subresource is the 404 of a missing object."""
    if info.verb in ("update", "patch") and not info.name:
        raise status.bad_request("name must be provided")
    if info.subresource:
        if info.subresource not in resource.subresources:
            raise status.not_found(resource.group, resource.resource, info.name)
        if info.verb in CUSTOM_VERBS and info.verb not in CUSTOM_SUBRESOURCE_VERBS:
            raise status.method_not_supported(resource.group, resource.resource, info.verb)
    if info.verb not in CUSTOM_VERBS:
        raise status.method_not_supported(resource.group, resource.resource, "")
