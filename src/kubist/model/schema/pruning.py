"""Pruning: removes fields that a structural schema does not specify, and returns their paths."""

from __future__ import annotations

from typing import Any

from kubist.model.schema.node import Schema

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
