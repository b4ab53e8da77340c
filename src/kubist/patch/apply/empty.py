"""The object of a kind before anything is set: what a create is compared with, and an apply starts from."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from kubist.schema.decode import decode
from kubist.schema.node import Schema


@lru_cache(maxsize=512)
def empty(schema: Schema) -> dict[str, Any]:
    """Not to be written to. Only built-in types have fields that are there although nobody set them."""
    if not schema.name:
        return {}
    obj: dict[str, Any] = decode(schema, {})
    return obj
