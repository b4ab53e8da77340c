"""Decoder for stored values that this version did not write, as the reference decodes its storage.

A value is JSON or protobuf, in any version of its kind. It gets the defaults of its version and is then
converted to the storage version. An object stored without a default, by another server or an older version, is
therefore read with the default.
"""

from __future__ import annotations

import orjson

from kubist.api.resources.resource import Resource, Resources
from kubist.model.codec import protobuf
from kubist.model.meta.object import Object
from kubist.model.schema.catalog import is_builtin, schema_for
from kubist.model.schema.decode import decode
from kubist.model.schema.leaves import KEEP_EMPTY
from kubist.model.schema.node import Schema
from kubist.model.schema.older import SERVED_AS

PROTOBUF = b"k8s\0"


def read(resources: Resources, home: Resource, value: bytes) -> Object:
    """Object of a stored value, in the storage version of its kind."""
    if value.startswith(PROTOBUF):
        api_version, kind, raw = protobuf.unwrap(value)
        api_version = SERVED_AS.get(f"{api_version}/{kind}", api_version)
        return _completed(resources, home, api_version, protobuf.decode(_schema(api_version, kind), raw))
    parsed: Object = orjson.loads(value)
    kind = str(parsed["kind"])
    api_version = SERVED_AS.get(f"{parsed['apiVersion']}/{kind}", str(parsed["apiVersion"]))
    group, _, version = api_version.rpartition("/")
    if not is_builtin(group, version, kind):
        # A version that only the kind's strategy knows, such as v1beta1 of a CRD.
        parsed = home.strategy.convert(parsed, home.storage_version)
        api_version = home.storage_version
    return _completed(resources, home, api_version, decode(_schema(api_version, kind), parsed, [KEEP_EMPTY]))


def _completed(resources: Resources, home: Resource, api_version: str, decoded: Object) -> Object:
    """Decoded object with defaults, in the storage version."""
    for name in ("kind", "apiVersion"):
        decoded.pop(name, None)
    metadata = decoded.pop("metadata", None) or {}
    obj: Object = {"kind": home.kind, "apiVersion": api_version, "metadata": metadata, **decoded}
    group, _, version = api_version.rpartition("/")
    source = (resources.of(group, version) or {}).get(home.resource, home)
    source.strategy.default(obj)
    if api_version != home.storage_version:
        obj = source.strategy.convert(obj, home.storage_version)
    home.strategy.default_stored(obj)
    return obj


def _schema(api_version: str, kind: str) -> Schema:
    group, _, version = api_version.rpartition("/")
    return schema_for(group, version, kind)
