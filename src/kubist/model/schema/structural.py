"""Pruning and defaults of custom objects by a structural schema. Defaults of built-in kinds are code in `api/kinds/`.

A null in a field that is not nullable counts as absent: it is replaced by the default or removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

from kubist.model.schema.node import UNSET, Schema

META = frozenset(("apiVersion", "kind", "metadata"))


def prune(schema: Schema | None, value: Any, *, root: bool = True) -> list[str]:
    """Removes unknown fields in place and returns their sorted paths.

    `root`: the value is a resource; its apiVersion, kind and metadata need no schema.
    """
    dropped: list[str] = []
    _prune(schema, value, "", dropped, root)
    dropped.sort()
    return dropped


def _prune(schema: Schema | None, value: Any, path: str, dropped: list[str], resource: bool) -> None:
    if isinstance(value, dict):
        if schema is None:
            dropped += [f"{path}.{key}" if path else key for key in value]
            value.clear()
            return
        fields = schema.fields
        preserve = schema.preserve_unknown
        unknown: list[str] = []
        for key, inner in value.items():
            field = fields.get(key)
            if resource and key in META:
                continue
            if field is not None:
                node: Schema | None = field.schema
            elif schema.additional or schema.type == "map":
                node = schema.items
            else:
                if not preserve:
                    unknown.append(key)
                continue
            if isinstance(inner, (dict, list)):
                at = f"{path}.{key}" if path else key
                _prune(node, inner, at, dropped, node is not None and node.embedded_resource)
        for key in unknown:
            del value[key]
            dropped.append(f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        if schema is not None and schema.preserve_unknown:
            _keep(schema, value, path, dropped)
            return
        items = schema.items if schema is not None else None
        embedded = items is not None and items.embedded_resource
        for index, item in enumerate(value):
            if isinstance(item, (dict, list)):
                _prune(items, item, f"{path}[{index}]", dropped, embedded)


def _keep(schema: Schema | None, value: Any, path: str, dropped: list[str]) -> None:
    """Prunes specified fields inside a list that preserves unknown fields."""
    if schema is None:
        return
    if isinstance(value, list):
        for index, item in enumerate(value):
            _keep(schema.items, item, f"{path}[{index}]", dropped)
    elif isinstance(value, dict):
        kept = schema.referred(preserve_unknown=True)
        _prune(kept, value, path, dropped, schema.embedded_resource)


Fill = Callable[[Any], None]
"""Fills in the defaults of a value, in place."""


def compile_defaults(schema: Schema | None) -> Fill | None:
    """Function that fills in the defaults of a structural schema. None if the schema has no defaults."""
    if schema is None:
        return None
    fields = {name: field.schema for name, field in schema.fields.items()}
    missing = [(name, inner.default, inner.nullable) for name, inner in fields.items() if _has_default(inner)]
    below = {name: made for name, inner in fields.items() if (made := compile_defaults(inner)) is not None}
    items, item = schema.items, compile_defaults(schema.items)
    if items is not None and item is None and not _has_default(items):
        items = None
    if not missing and not below and items is None:
        return None
    others = items if schema.additional or schema.type == "map" else None

    def fill_struct(value: dict[str, Any]) -> None:
        for name, default, nullable in missing:
            if name not in value or (value[name] is None and not nullable):
                value[name] = deepcopy(default) if default.__class__ in (dict, list) else default
        for name, made in below.items():
            if name in value:
                made(value[name])
        if others is not None:
            _fill_each(others, item, value, [key for key in value if key not in fields])

    def fill(value: Any) -> None:
        kind = value.__class__
        if kind is dict:
            fill_struct(value)
        elif kind is list and items is not None:
            _fill_each(items, item, value, range(len(value)))

    return fill


def _fill_each(schema: Schema, fill: Fill | None, values: Any, places: Iterable[Any]) -> None:
    """Fills in defaults for the given elements of a list or values of a map."""
    for place in places:
        if _forbidden(schema, values[place]):
            values[place] = _default(schema)
        if fill is not None:
            fill(values[place])


def drop_nulls(schema: Schema | None, value: Any) -> None:
    """Removes nulls of fields that are not nullable and have no default, in place."""
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
