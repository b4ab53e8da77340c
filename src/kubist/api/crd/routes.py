"""Paths and methods of a custom resource. An unknown path or scope gets the 404 of an unknown path; an
unknown subresource gets the 404 of a missing object."""

from __future__ import annotations

from kubist.api.request import RequestInfo
from kubist.api.resources.resource import Resource
from kubist.model.meta import status

ACROSS_NAMESPACES = ("list", "watch")
VERBS = frozenset(("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"))
SUBRESOURCE_VERBS = ("get", "update", "patch")


def in_scope(info: RequestInfo, resource: Resource) -> bool:
    """Whether the request path exists for this resource: the scope matches. Only list and watch work across
    namespaces. The deprecated proxy paths do not exist."""
    scoped = bool(info.namespace)
    if scoped and not resource.namespaced:
        return False
    if resource.namespaced and not scoped and info.verb not in ACROSS_NAMESPACES:
        return False
    return info.verb != "proxy"


def check(info: RequestInfo, resource: Resource) -> None:
    """Reject updates and patches without a name, unknown subresources, verbs that a subresource does not have,
    and methods that stand for no verb."""
    if info.verb in ("update", "patch") and not info.name:
        raise status.bad_request("name must be provided")
    if info.subresource:
        if info.subresource not in resource.subresources:
            raise status.not_found(resource.group, resource.resource, info.name)
        if info.verb in VERBS and info.verb not in SUBRESOURCE_VERBS:
            raise status.method_not_supported(resource.group, resource.resource, info.verb)
    if info.verb not in VERBS:
        raise status.method_not_supported(resource.group, resource.resource, "")
