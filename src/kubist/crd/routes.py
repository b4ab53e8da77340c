"""Which paths and methods of a custom resource lead anywhere. What does not is answered in two ways: as if there
were no such path at all, or as an object that is not found."""

from __future__ import annotations

from kubist.meta import status
from kubist.request import RequestInfo
from kubist.resources.resource import Resource

ACROSS_NAMESPACES = ("list", "watch")
VERBS = frozenset(("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"))
SUBRESOURCE_VERBS = ("get", "update", "patch")


def in_scope(info: RequestInfo, resource: Resource) -> bool:
    """Whether the path is one of the resource's at all."""
    scoped = bool(info.namespace)
    if scoped and not resource.namespaced:
        return False
    if resource.namespaced and not scoped and info.verb not in ACROSS_NAMESPACES:
        return False
    return info.verb in VERBS


def check(info: RequestInfo, resource: Resource) -> None:
    """Refuse methods and sub-resources that the resource does not have."""
    if info.verb in ("update", "patch") and not info.name:
        raise status.bad_request("name must be provided")
    if info.subresource:
        if info.subresource not in resource.subresources:
            raise status.not_found(resource.group, resource.resource, info.name)
        if info.verb not in SUBRESOURCE_VERBS:
            raise status.method_not_supported(resource.group, resource.resource, info.verb)
