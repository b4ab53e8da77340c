"""OpenAPI v3 form of a schema node. It is the inverse of the catalog and loses no property of a type.

This module handles one type at a time. Documents are built elsewhere.
"""

from __future__ import annotations

from typing import Any

from kubist.model.schema import catalog
from kubist.model.schema.node import UNSET, Schema

REF = "#/components/schemas/"


def definition(schema: Schema) -> dict[str, Any]:
    """OpenAPI schema of a named type."""
    if schema.type != "struct":
        return dict(schema.extras or {})
    out: dict[str, Any] = {"type": "object"}
    if fields := schema.fields:
        out["properties"] = {name: property_of(fields[name].schema) for name in sorted(fields)}
    if required := [name for name, field in fields.items() if field.required]:
        out["required"] = required
    return out | (schema.extras or {})


def property_of(schema: Schema, inner: bool = False) -> dict[str, Any]:
    """OpenAPI schema of a field: a reference to its type or the type itself, with the properties of the field.

    `inner`: the item of a list or map, which can only add a default.
    """
    out: dict[str, Any] = {}
    if schema.name:
        ref = {"$ref": REF + schema.name}
        if inner and schema.default is UNSET:
            return ref
        out["allOf"] = [ref]
        if schema.map_type != catalog.by_name(schema.name).map_type:
            out["x-kubernetes-map-type"] = schema.map_type
    else:
        out |= _structure(schema)
    if schema.default is not UNSET:
        out["default"] = schema.default
    if schema.enum:
        out["enum"] = list(schema.enum)
    if schema.list_type:
        out["x-kubernetes-list-type"] = schema.list_type
    if schema.map_keys:
        out["x-kubernetes-list-map-keys"] = list(schema.map_keys)
    if schema.merge_key:
        out["x-kubernetes-patch-merge-key"] = schema.merge_key
    if schema.patch_strategies:
        out["x-kubernetes-patch-strategy"] = ",".join(schema.patch_strategies)
    return out


def _structure(schema: Schema) -> dict[str, Any]:
    match schema.type:
        case "any":
            return {}
        case "list":
            assert schema.items
            return {"type": "array", "items": property_of(schema.items, inner=True)}
        case "map":
            assert schema.items
            out = {"type": "object", "additionalProperties": property_of(schema.items, inner=True)}
            if schema.map_type:
                out["x-kubernetes-map-type"] = schema.map_type
            return out
        case _:
            out = {"type": schema.type}
            if schema.format:
                out["format"] = schema.format
            return out
