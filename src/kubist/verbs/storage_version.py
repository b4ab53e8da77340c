"""Conversion of built-in objects between the version of the request and the stored version.

Custom objects are converted as their entries are decoded (`Call.decode_entry`, `Call.to_stored_version`).
"""

from __future__ import annotations

from kubist.meta.object import Object
from kubist.verbs.call import Call


def is_converted(call: Call) -> bool:
    """Whether a built-in object has to be converted, because the request uses another version than the store."""
    return not call.resource.custom and call.resource.api_version != call.resource.storage_version


def to_storage_version(call: Call, obj: Object) -> Object:
    """Convert an object of the request's version; the object is used up."""
    resource = call.resource
    return resource.strategy.convert(obj, resource.storage_version) if is_converted(call) else obj


def to_request_version(call: Call, obj: Object) -> Object:
    """Convert an object of the stored version; the object is used up."""
    resource = call.resource
    return resource.strategy.convert(obj, resource.api_version) if is_converted(call) else obj
