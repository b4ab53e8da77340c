"""Conversion of objects between the version of the request and the stored version.

Built-in objects are converted here. Custom objects are converted as their entries are decoded and encoded.
"""

from __future__ import annotations

from kubist.api.verbs.resource_request import ResourceRequest
from kubist.model.meta.object import Object
from kubist.storage.cache.cache import Entry


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
    """Object of a dry run as a read of the stored object would return it. Only custom objects are encoded and
    decoded for this: their conversion may change or refuse them, and defaults may apply. The object is used up."""
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
