"""Validates lists of `x-kubernetes-list-type` set or map: items (set) or their keys (map) must be unique."""

from __future__ import annotations

from typing import Any

import orjson

from kubist.model.meta import fields
from kubist.model.meta.fields import FieldError
from kubist.model.schema.node import Schema

Errors = list[FieldError]
_SCALARS = ("string", "integer", "number", "boolean")


def validate(schema: Schema, value: Any, path: str = "") -> Errors:
    """Duplicates: one error for each duplicated value, at the index of its second occurrence."""
    errors: Errors = []
    _validate(schema, value, path, errors)
    return errors


def _validate(schema: Schema, value: Any, path: str, errors: Errors) -> None:
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(inner, (dict, list)):
                continue
            field = schema.fields.get(key)
            if field is not None:
                _validate(field.schema, inner, f"{path}.{key}" if path else key, errors)
            elif schema.additional and schema.items is not None:
                _validate(schema.items, inner, f"{path}[{key}]", errors)
    elif isinstance(value, list):
        if schema.list_type == "set":
            _unique(value, value, path, errors)
        elif schema.list_type == "map":
            _unique_keys(schema.map_keys, value, path, errors)
        if schema.items is not None and schema.items.type not in _SCALARS:
            for index, item in enumerate(value):
                if isinstance(item, (dict, list)):
                    _validate(schema.items, item, f"{path}[{index}]", errors)


def _unique(values: list[Any], shown: list[Any], path: str, errors: Errors) -> None:
    if set(map(type, values)) == {str} and len(set(values)) == len(values):
        return
    seen: dict[bytes, int] = {}
    for index, value in enumerate(values):
        key = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
        times = seen.get(key, 0)
        seen[key] = times + 1
        if times == 1:
            errors.append(fields.duplicate(f"{path}[{index}]", shown[index]))


def _unique_keys(keys: tuple[str, ...], value: list[Any], path: str, errors: Errors) -> None:
    for index, item in enumerate(value):
        if item is not None and not isinstance(item, dict):
            why = "must be an object for an array of list-type map"
            errors.append(fields.invalid(f"{path}[{index}]", item, why))
            return
    if len(value) > 1:
        if len(keys) == 1:
            only = [item.get(keys[0]) if item else None for item in value]
            if set(map(type, only)) == {str} and len(set(only)) == len(only):
                return
        named = [{key: item[key] for key in keys if key in item} if item else {} for item in value]
        _unique(named, named, path, errors)
