"""Printer columns and selectable fields of a custom resource.

`columns(version spec)` lists the Table columns after the name; `cell(column, obj)` computes one cell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from kubist.api.crd.jsonpath import JsonPath, PathError
from kubist.base import clock
from kubist.model.meta.durations import human_duration
from kubist.model.meta.numerals import canonical, go_float, odd_number, written
from kubist.model.meta.object import Object
from kubist.model.meta.times import is_zero, parse_time


@dataclass(slots=True, frozen=True)
class Column:
    """A printer column of a Table."""

    name: str
    type: str
    format: str
    description: str
    priority: int
    path: JsonPath


AGE = Object(name="Age", type="date", jsonPath=".metadata.creationTimestamp")
AGE_DESCRIPTION = "Time since the object was created."


def columns(version: Object) -> list[Column]:
    """Printer columns of a version; only Age if it names none. An invalid JSONPath ends the list, as in the
    reference."""
    made: list[Column] = []
    named = version.get("additionalPrinterColumns")
    for column in named or [{**AGE, "description": AGE_DESCRIPTION}]:
        path: str = column["jsonPath"]
        try:
            parsed = JsonPath(path)
        except PathError:
            break
        description = column.get("description") or (
            f"Custom resource definition column (in JSONPath format): {path}"
        )
        made.append(
            Column(
                column["name"],
                column["type"],
                column.get("format") or "",
                description,
                column.get("priority") or 0,
                parsed,
            )
        )
    return made


NOTHING: Any = object()


def value_at(path: JsonPath, obj: Object) -> Any:
    """The first value at a path; NOTHING if the path matches no value or cannot be evaluated."""
    try:
        values = path.find(obj)
    except PathError:
        return NOTHING
    return values[0] if values else NOTHING


def cell(column: Column, obj: Object, now: float | None = None) -> Any:
    """Cell of a column for an object; None if the value is absent or does not fit the column's type."""
    value = value_at(column.path, obj)
    if value is NOTHING:
        return None
    if column.type == "string":
        return printed(value)
    if column.type == "integer" and isinstance(value, (int, float)) and not isinstance(value, bool):
        return as_int64(value)
    if column.type == "number" and isinstance(value, (int, float)) and not isinstance(value, bool):
        return canonical(float(value))
    if column.type == "boolean" and isinstance(value, bool):
        return value
    if column.type == "date" and isinstance(value, str):
        return age(value, now)
    return None


LEAST = -(1 << 63)


def as_int64(value: float) -> int:
    """The number as an int64. A number out of range becomes the smallest int64, as on amd64."""
    whole = int(value)
    return whole if LEAST <= whole < -LEAST else LEAST


def printed(value: Any) -> str:
    if value is None:
        return "<no value>"
    if isinstance(value, (dict, list)):
        encoded = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
        text = written(orjson.loads(encoded)) if odd_number(encoded) else encoded.decode()
        return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        value = float(value)
    return go_float(value) if isinstance(value, float) else str(value)


def age(text: str, now: float | None = None) -> str:
    """Age of an RFC 3339 time, as kubectl prints it; "<invalid>" if it cannot be parsed, "<unknown>" if it is empty."""
    try:
        when = parse_time(text) if text not in ("", "null") else None
    except ValueError:
        return "<invalid>"
    if when is None or is_zero(when):
        return "<unknown>"
    return human_duration((clock.now() if now is None else now) - when)


class FieldPath:
    """JSONPath of a selectable field."""

    def __init__(self, text: str) -> None:
        self._path = JsonPath(text)

    def text(self, obj: Object) -> str:
        """The value as text for field selectors; empty if absent."""
        value = value_at(self._path, obj)
        return "" if value is NOTHING or value is None else printed(value)


def selectable(version: Object) -> dict[str, FieldPath]:
    """Selectable fields of a version by selector label: the path without its leading dot."""
    named = version.get("selectableFields") or ()
    return {field["jsonPath"].removeprefix("."): FieldPath(field["jsonPath"]) for field in named}
