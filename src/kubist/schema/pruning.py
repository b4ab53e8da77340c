"""Pruning of custom resources: what a structural schema does not know is dropped, and named.

Kept are fields under `preserve_unknown`, and kind, version and metadata of the object and embedded resources.
"""

from __future__ import annotations

from typing import Any

from kubist.schema.node import Schema

_RESOURCE = frozenset(("apiVersion", "kind", "metadata"))


def prune(schema: Schema | None, value: Any, *, root: bool = True) -> list[str]:
    """Drop the unknown fields of a value in place and give their paths, sorted.

    `root`: the value is a resource, whose kind, version and metadata need no schema."""
    dropped: list[str] = []
    _prune(schema, value, "", root, dropped)
    return sorted(dropped)


def _prune(schema: Schema | None, value: Any, path: str, resource: bool, dropped: list[str]) -> None:
    preserve = schema is not None and schema.preserve_unknown
    if isinstance(value, dict):
        fields = schema.fields if schema is not None else {}
        takes_others = schema is not None and (schema.additional or schema.type == "map")
        for key in list(value):
            if resource and key in _RESOURCE:
                continue
            at = f"{path}.{key}" if path else key
            if (field := fields.get(key)) is not None:
                _prune(field.schema, value[key], at, field.schema.embedded_resource, dropped)
            elif takes_others:
                other = schema.items if schema is not None else None
                _prune(other, value[key], at, other is not None and other.embedded_resource, dropped)
            elif not preserve:
                del value[key]
                dropped.append(at)
    elif isinstance(value, list):
        items = schema.items if schema is not None else None
        embedded = items is not None and items.embedded_resource
        if preserve:
            if items is None:
                return
            items = items.referred(preserve_unknown=True)
        for index, item in enumerate(value):
            _prune(items, item, f"{path}[{index}]", embedded, dropped)
