"""The object of a kind before anything is set: what a create is compared with, and an apply starts from."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from kubist.schema.node import Field, Schema

_ZEROS: dict[str, Any] = {"string": "", "integer": 0, "number": 0, "boolean": False}


@lru_cache(maxsize=512)
def empty(schema: Schema) -> dict[str, Any]:
    """Not to be written to. Only built-in types write fields that nobody set."""
    return _empty(schema)


def _empty(schema: Schema) -> dict[str, Any]:
    if not schema.name:
        return {}
    return {name: _zero(field) for name, field in schema.fields.items() if _always_written(field)}


def _always_written(field: Field) -> bool:
    if field.pointer or field.omit_zero:
        return False
    return not field.omit_empty or field.schema.type == "struct"


def _zero(field: Field) -> Any:
    if field.schema.type == "struct":
        return _empty(field.schema)
    if field.schema.format in ("time", "microtime"):
        return None
    return _ZEROS.get(field.schema.type)
