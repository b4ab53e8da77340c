"""Defaults of custom resources, which are in their schema. Those of built-in kinds are code in `kinds/`.

A null that the schema forbids counts as absent: it takes the default, or goes.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from kubist.schema.node import UNSET, Schema


def apply_defaults(schema: Schema | None, value: Any) -> None:
    """Fill in the defaults of a structural schema, in place."""
    if schema is None:
        return
    if isinstance(value, dict):
        for name, field in schema.fields.items():
            if _has_default(field.schema) and (name not in value or _forbidden(field.schema, value[name])):
                value[name] = deepcopy(field.schema.default)
        for key in value:
            inner = _field(schema, key)
            if inner is None:
                continue
            if key not in schema.fields and _forbidden(inner, value[key]):
                value[key] = _default(inner)
            apply_defaults(inner, value[key])
    elif isinstance(value, list) and schema.items is not None:
        for index, item in enumerate(value):
            if _forbidden(schema.items, item):
                value[index] = _default(schema.items)
            apply_defaults(schema.items, value[index])


def drop_nulls(schema: Schema | None, value: Any) -> None:
    """Remove the nulls of fields that are not nullable and have no default, in place."""
    if isinstance(value, dict):
        for key in list(value):
            inner = _field(schema, key) if schema is not None else None
            if inner is not None and _forbidden(inner, value[key]) and not _has_default(inner):
                del value[key]
            else:
                drop_nulls(inner, value[key])
    elif isinstance(value, list):
        for item in value:
            drop_nulls(schema.items if schema is not None else None, item)


def _field(schema: Schema, key: str) -> Schema | None:
    if (field := schema.fields.get(key)) is not None:
        return field.schema
    return schema.items if schema.additional or schema.type == "map" else None


def _forbidden(schema: Schema, value: Any) -> bool:
    return value is None and not schema.nullable


def _has_default(schema: Schema) -> bool:
    return schema.default is not UNSET and schema.default is not None


def _default(schema: Schema) -> Any:
    return deepcopy(schema.default) if _has_default(schema) else None
