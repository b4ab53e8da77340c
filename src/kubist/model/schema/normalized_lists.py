"""Atomic lists that decoding changed: a quantity in another form or without a value, or an empty value dropped.

The reference compares such lists as the client sent them, so the client that sends one becomes its owner.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubist.base.jsontext.json import Literal
from kubist.model.meta.object import Object
from kubist.model.meta.quantity import canonical_quantity
from kubist.model.schema.empties import may_be_empty
from kubist.model.schema.node import Field, Schema
from kubist.model.schema.object_paths import Path, parent


def rewritten(schema: Schema, value: Any, path: Path = ()) -> Iterator[Path]:
    """Paths of the changed atomic lists in `value`, the value that was sent."""
    if schema.type == "struct" and isinstance(value, dict):
        for name, item in value.items():
            if item and name in schema.fields:
                yield from rewritten(schema.fields[name].schema, item, (*path, name))
    elif schema.items is not None and isinstance(value, dict):
        for name, item in value.items():
            yield from rewritten(schema.items, item, (*path, name))
    elif schema.items is not None and isinstance(value, list):
        if schema.list_type not in ("map", "set"):
            if any(_changes(schema.items, item) for item in value):
                yield path
        else:
            for index, item in enumerate(value):
                yield from rewritten(schema.items, item, (*path, index))


def _changes(schema: Schema, value: Any) -> bool:
    """Whether decoding changes a value."""
    if schema.format == "quantity":
        text = value.text if isinstance(value, Literal) else str(value)
        return value is None or canonical_quantity(text.strip()) != text
    if schema.type == "struct" and isinstance(value, dict):
        return any(_changes_field(field, value.get(name)) for name, field in schema.fields.items())
    if schema.items is not None and isinstance(value, (dict, list)):
        items = schema.items
        return any(_changes(items, item) for item in (value.values() if isinstance(value, dict) else value))
    return False


def _changes_field(field: Field, value: Any) -> bool:
    """Whether decoding changes the value of a field, or None if it is absent."""
    if value:
        return _changes(field.schema, value)
    if value is None:
        return field.schema.format == "quantity" and not field.pointer
    return field.omit_empty and may_be_empty(field)


def marked(schema: Schema, sent: Any, obj: Object) -> dict[Path, list[Any]]:
    """Changed lists of `obj` by path, each with an item more, so that it differs from every stored list."""
    found: dict[Path, list[Any]] = {}
    for path in rewritten(schema, sent):
        value = _at(parent(obj, path), path[-1])
        if isinstance(value, list):
            found[path] = [*value, None]
    return found


def _at(inner: Any, step: str | int) -> Any:
    if isinstance(inner, dict):
        return inner.get(step)
    if isinstance(inner, list) and isinstance(step, int) and step < len(inner):
        return inner[step]
    return None
