"""Bodies of any representation as JSON values, for records of requests."""

from __future__ import annotations

from typing import Any

import orjson

from kubist.base.jsontext.errors import DecodeError
from kubist.model.codec import protobuf, yaml
from kubist.model.schema.catalog import schema_for


def read_body(body: bytes, content_type: str) -> Any:
    """Value of a JSON, YAML or protobuf body. None if it is malformed or of another type."""
    try:
        if "protobuf" in content_type:
            api_version, kind, raw = protobuf.unwrap(body)
            group, _, version = api_version.rpartition("/")
            value: Any = protobuf.decode(schema_for(group, version, kind), raw)
            return {"kind": kind, "apiVersion": api_version, **value}
        if "yaml" in content_type:
            return yaml.parse(body).value
        return orjson.loads(body)
    except (DecodeError, ValueError, LookupError, RecursionError):
        return None
