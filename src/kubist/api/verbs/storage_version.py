"""Conversion of objects between the version of the request and the stored version.

Built-in objects are converted here. A patch may name another version of a built-in kind (`named_version`). Custom
objects are converted as their entries are decoded and encoded. They cannot be converted from a version that their CRD
no longer has. In that case kube-apiserver's cache never becomes ready: reads of the cache get 429, reads of the store
fail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubist.api.resources.custom import CustomResource
from kubist.api.resources.resource import Resource
from kubist.api.verbs.resource_request import ResourceRequest
from kubist.model.meta import status
from kubist.model.meta.object import Object
from kubist.model.schema.older import SERVED_AS
from kubist.storage.cache.cache import Collection, Entry

if TYPE_CHECKING:
    from kubist.api.verbs.options import ListOptions
    from kubist.api.verbs.selection import Selection


def is_converted(ctx: ResourceRequest) -> bool:
    """Whether a built-in object has to be converted, because the request uses another version than the store."""
    return not ctx.resource.custom and ctx.resource.api_version != ctx.resource.storage_version


def to_storage_version(ctx: ResourceRequest, obj: Object) -> Object:
    """Convert a built-in object of the request's version; the object is used up."""
    resource = ctx.resource
    return resource.strategy.convert(obj, resource.storage_version) if is_converted(ctx) else obj


def to_request_version(ctx: ResourceRequest, obj: Object) -> Object:
    """Convert a built-in object of the stored version; the object is used up."""
    resource = ctx.resource
    return resource.strategy.convert(obj, resource.api_version) if is_converted(ctx) else obj


async def decode_entry(ctx: ResourceRequest, entry: Entry) -> Object:
    """Copy of a stored object in the version that the verbs handle: the request's for custom resources, else the
    stored one."""
    return (await entry_in_request_version(ctx, entry)).object()


async def entry_in_request_version(ctx: ResourceRequest, entry: Entry) -> Entry:
    """Entry of a custom object converted to the request's version."""
    resource = ctx.resource
    if resource.custom is None or entry.kind.api_version == resource.api_version:
        return entry
    return await resource.custom.conversion.entry(entry, resource.api_version)


async def read_back(ctx: ResourceRequest, obj: Object) -> Object:
    """Object of a dry run as a read of the stored object would return it. Only custom objects are encoded and decoded
    for this: their conversion may change or reject them, and defaults may apply. The object is used up."""
    custom = ctx.resource.custom
    if custom is None:
        return obj
    return await custom.conversion.read_back(obj, ctx.resource.storage_version)


async def to_custom_storage_version(ctx: ResourceRequest, obj: Object) -> Object:
    """Custom object converted to the stored version of its CRD."""
    custom, storage_version = ctx.resource.custom, ctx.resource.storage_version
    if custom is None or obj["apiVersion"] == storage_version:
        return obj
    return await custom.conversion.to_stored_version(obj, storage_version)


def named_version(ctx: ResourceRequest, patched: Object) -> Resource | None:
    """Resource in the version that a patched built-in object names; None if that is the request's version. An older
    version with the same fields is renamed in the object."""
    resource = ctx.resource
    api_version = patched.get("apiVersion")
    if (
        api_version == resource.api_version
        or not isinstance(api_version, str)
        or patched.get("kind") != resource.kind
    ):
        return None
    current = SERVED_AS.get(f"{api_version}/{resource.kind}", api_version)
    if current == resource.api_version:
        patched["apiVersion"] = current
        return None
    group, _, version = current.rpartition("/")
    other = (ctx.api.resources.of(group, version) or {}).get(resource.resource)
    if other is None or other.custom or other.prefix != resource.prefix or other.kind != resource.kind:
        return None
    patched["apiVersion"] = current
    return other


def from_named_version(ctx: ResourceRequest, other: Resource, obj: Object) -> Object:
    """Object converted from another version to that of the request."""
    strategy = (other if other.api_version != other.storage_version else ctx.resource).strategy
    return strategy.convert(obj, ctx.resource.api_version)


def unknown_fields_of_version(custom: CustomResource, value: Object) -> list[str]:
    """Messages about unknown fields of a custom object that names another version of its group. A version that the CRD
    does not have knows no fields."""
    api_version = value.get("apiVersion")
    if (
        not isinstance(api_version, str)
        or api_version == custom.version.api_version
        or api_version.rpartition("/")[0] != custom.version.group
    ):
        return []
    version = custom.conversion.versions.get(api_version)
    if version is None:
        return [
            f'unknown field "{name}"' for name in sorted(value.keys() - {"apiVersion", "kind", "metadata"})
        ]
    try:
        return version.decode(value)[1]
    except status.APIError:
        return []


def check_list_is_convertible(
    ctx: ResourceRequest, collection: Collection, options: ListOptions, selection: Selection
) -> None:
    """Reject a list that would have to read an object of a version that the CRD no longer has."""
    removed = collection.kind.removed_versions()
    if not removed:
        return
    resource_version = options.resource_version
    exact = options.resource_version_match == "Exact" or (options.limit and resource_version != "0")
    if ctx.info.verb == "list" and resource_version and not exact and not options.continue_:
        check_cache_is_convertible(ctx, collection)
    if selection.key is None and not options.limit:
        version = _first_removed(collection, selection.prefix, removed)
        if version:
            raise status.plain_error(_inconvertible(version))


def check_cache_is_convertible(ctx: ResourceRequest, collection: Collection) -> None:
    """Reject a read of the cache, such as a watch, while it holds an object of a version that the CRD no longer has."""
    removed = collection.kind.removed_versions()
    version = _first_removed(collection, collection.kind.prefix, removed) if removed else ""
    if version:
        kind = f"{ctx.resource.api_version}, Kind={ctx.resource.kind}"
        raise status.too_many_requests(
            f"storage is (re)initializing: failed to list {kind}: {_inconvertible(version)}", 1
        )


def _first_removed(collection: Collection, prefix: str, removed: frozenset[str]) -> str:
    versions = (entry.kind.api_version for entry in collection.below(prefix))
    return next((version for version in versions if version in removed), "")


def _inconvertible(version: str) -> str:
    return f"request to convert CR from an invalid group/version: {version}"
