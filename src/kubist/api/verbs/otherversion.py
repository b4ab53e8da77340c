"""Objects that name another apiVersion than the request: patched built-in objects are decoded in the version that they
name, bodies of custom objects are rejected after field validation by that version."""

from __future__ import annotations

from kubist.api.resources.custom import CustomResource
from kubist.api.resources.resource import Resource
from kubist.api.verbs.resource_request import ResourceRequest
from kubist.model.meta import status
from kubist.model.meta.object import Object
from kubist.model.schema.older import SERVED_AS


def named(ctx: ResourceRequest, patched: Object) -> Resource | None:
    """Resource in the version that a patched built-in object names; None if that is the request's version. An older
    version with the same fields is renamed in the object."""
    resource = ctx.resource
    given = patched.get("apiVersion")
    if given == resource.api_version or not isinstance(given, str) or patched.get("kind") != resource.kind:
        return None
    current = SERVED_AS.get(f"{given}/{resource.kind}", given)
    if current == resource.api_version:
        patched["apiVersion"] = current
        return None
    group, _, version = current.rpartition("/")
    other = (ctx.api.resources.of(group, version) or {}).get(resource.resource)
    if other is None or other.custom or other.prefix != resource.prefix or other.kind != resource.kind:
        return None
    patched["apiVersion"] = current
    return other


def converted(ctx: ResourceRequest, other: Resource, obj: Object) -> Object:
    """Object converted from another version to that of the request."""
    strategy = (other if other.api_version != other.storage_version else ctx.resource).strategy
    return strategy.convert(obj, ctx.resource.api_version)


def unknown_fields(custom: CustomResource, value: Object) -> list[str]:
    """Messages about unknown fields of a custom object that names another version of its group. A version that the CRD
    does not have knows no fields."""
    given = value.get("apiVersion")
    if (
        not isinstance(given, str)
        or given == custom.version.api_version
        or given.rpartition("/")[0] != custom.version.group
    ):
        return []
    version = custom.conversion.versions.get(given)
    if version is None:
        return [
            f'unknown field "{name}"' for name in sorted(value.keys() - {"apiVersion", "kind", "metadata"})
        ]
    try:
        return version.decode(value)[1]
    except status.APIError:
        return []
