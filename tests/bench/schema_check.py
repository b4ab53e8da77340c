"""Checks values against the schemas of an OpenAPI document: the part of JSON Schema that the control API uses."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}
KEYWORDS = {
    *("type", "properties", "required", "additionalProperties", "items", "oneOf", "enum", "$ref", "format"),
    *("minimum", "maximum", "minLength", "maxLength", "minItems", "description", "default"),
}


def problems(document: Any, schema: Any, value: Any, path: str = "body") -> Iterator[str]:
    """Differences between a value and a schema, each with its path."""
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    assert set(schema) <= KEYWORDS, (
        f"{path}: keywords that this check does not know: {set(schema) - KEYWORDS}"
    )
    if "oneOf" in schema:
        fitting = [each for each in schema["oneOf"] if not list(problems(document, each, value, path))]
        if len(fitting) != 1:
            yield f"{path}: {len(fitting)} of the alternatives fit {value!r}"
    kind = schema.get("type")
    if kind is not None and (
        not isinstance(value, TYPES[kind]) or (isinstance(value, bool) and kind != "boolean")
    ):
        yield f"{path}: {value!r} is no {kind}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value!r} is none of {schema['enum']}"
    if schema.get("format") == "date-time":
        datetime.datetime.fromisoformat(value)
    if isinstance(value, int) and value < schema.get("minimum", value):
        yield f"{path}: {value} is too small"
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from problems(document, schema.get("items", {}), item, f"{path}[{index}]")
    if isinstance(value, dict):
        yield from _problems_of_fields(document, schema, value, path)


def _problems_of_fields(document: Any, schema: Any, value: dict[str, Any], path: str) -> Iterator[str]:
    known = schema.get("properties", {})
    yield from (f"{path}.{name} is missing" for name in schema.get("required", ()) if name not in value)
    for name, field in value.items():
        if name in known:
            yield from problems(document, known[name], field, f"{path}.{name}")
        elif schema.get("additionalProperties") is False:
            yield f"{path}.{name} is not described"
