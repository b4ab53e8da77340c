"""Order of keys in the JSON of objects, as error messages quote it."""

from __future__ import annotations

from typing import Any

from kubist.model.schema.node import Schema


def in_declared_order(schema: Schema, value: Any) -> Any:
    """Copy of a value with keys in the order of a typed object: struct fields as declared, map keys sorted.

    Objects without a type are sorted throughout.
    """
    if not schema.name and schema.type == "struct":
        return with_sorted_keys(value)
    if isinstance(value, dict):
        if schema.type == "struct":
            known = {name: field for name, field in schema.fields.items() if name in value}
            ordered = {name: in_declared_order(field.schema, value[name]) for name, field in known.items()}
            return {**ordered, **{key: item for key, item in value.items() if key not in ordered}}
        if schema.items is not None:
            return {key: in_declared_order(schema.items, value[key]) for key in sorted(value)}
    elif isinstance(value, list) and schema.items is not None:
        return [in_declared_order(schema.items, item) for item in value]
    return value


def with_sorted_keys(value: Any, only: set[int] | None = None) -> Any:
    """Copy of a value with sorted keys. `only`: sort only the objects with these identities."""
    if isinstance(value, dict):
        keys = sorted(value) if only is None or id(value) in only else value
        return {key: with_sorted_keys(value[key], only) for key in keys}
    if isinstance(value, list):
        return [with_sorted_keys(item, only) for item in value]
    return value
