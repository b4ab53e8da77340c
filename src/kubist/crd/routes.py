"""Which paths and methods of a custom resource lead anywhere. What does not is answered in two ways: as if there
were no such path at all, or as an object that is not found."""

from __future__ import annotations

from kubist.meta import status
from kubist.request import RequestInfo
from kubist.resources import Resource

ACROSS_NAMESPACES = ("list", "watch")
VERBS = frozenset(("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"))
SUBRESOURCE_VERBS = ("get", "update", "patch")


def leads_somewhere(info: RequestInfo, resource: Resource) -> bool:
    """False: the path is none of the resource's. Raises for methods and sub-resources that it does not have."""
    scoped = bool(info.namespace)
    if scoped and not resource.namespaced:
        return False
    if resource.namespaced and not scoped and info.verb not in ACROSS_NAMESPACES:
        return False
    if info.verb not in VERBS:
        return False
    if info.subresource:
        found = resource.subresources.get(info.subresource)
        if found is None:
            raise status.not_found(resource.group, resource.resource, info.name)
        if info.verb not in SUBRESOURCE_VERBS:
            raise status.method_not_supported(resource.group, resource.resource, info.verb)
    return True
