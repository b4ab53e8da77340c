"""Conversion of JSON values to CEL values by type: timestamps, durations, bytes, sets and list maps.

Objects are not converted as a whole: a field is converted when it is selected.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Any

from kubist.model.cel.errors import EvaluationError
from kubist.model.cel.types import Type
from kubist.model.cel.values import MapList, SetList, parse_date, parse_duration, parse_timestamp

Convert = Callable[[Any], Any]


def converter(type_: Type | None) -> Convert | None:
    """Function that converts a JSON value to a CEL value of this type; None if no conversion is needed."""
    if type_ is None:
        return None
    props = type_.props or {}
    match type_.kind:
        case "double":
            return lambda value: float(value) if value.__class__ is int else value
        case "int":
            return lambda value: int(value) if value.__class__ is float else value
        case "timestamp":
            parse = parse_date if props.get("format") == "date" else parse_timestamp
            return lambda value: parse(value) if isinstance(value, str) else value
        case "duration":
            return lambda value: parse_duration(value) if isinstance(value, str) else value
        case "bytes":
            return lambda value: _decoded(value) if isinstance(value, str) else value
        case "list":
            return _list(type_, props)
        case "map":
            inner = converter(type_.params[1])
            if inner is None:
                return None
            return lambda value: (
                {key: inner(item) for key, item in value.items()} if isinstance(value, dict) else value
            )
    return None


def _list(type_: Type, props: dict[str, Any]) -> Convert | None:
    inner = converter(type_.params[0])
    kind = props.get("x-kubernetes-list-type")
    keys = tuple(props.get("x-kubernetes-list-map-keys") or ())

    def convert(value: Any) -> Any:
        if not isinstance(value, list):
            return value
        items = [inner(item) for item in value] if inner is not None else value
        if kind == "set":
            return SetList(items)
        return MapList(items, keys) if kind == "map" else items

    return convert if inner is not None or kind in ("set", "map") else None


def _decoded(value: str) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise EvaluationError("invalid base64") from None
