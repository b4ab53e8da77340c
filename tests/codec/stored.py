"""Stored versions of objects, without a store."""

from __future__ import annotations

import orjson

from kubist.api.resources.resource import Resource, builtin
from kubist.model.meta.object import Object
from kubist.storage.cache.cache import Entry, StoredKind


def resource(kind: str, group: str = "") -> Resource:
    return next(found for found in builtin() if (found.group, found.kind) == (group, kind))


def entry(of: Resource, obj: Object, revision: int = 7) -> Entry:
    kind = StoredKind(of.prefix, of.storage_version, of.kind, lambda obj: {}, orjson.loads)
    obj["metadata"].setdefault("creationTimestamp", "2027-01-15T08:00:00Z")
    return kind.entry(of.key("default", obj["metadata"]["name"]), kind.encode(obj), revision)


def config_map(name: str = "a") -> Entry:
    return entry(resource("ConfigMap"), {"metadata": {"name": name}, "data": {"k": "v"}})
