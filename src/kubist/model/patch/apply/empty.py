"""Empty object of a kind: a create is compared with it, and an apply that creates starts from it."""

from __future__ import annotations

from typing import Any

from kubist.model.schema.decode import decode
from kubist.model.schema.node import Schema, kept


@kept
def empty(schema: Schema) -> dict[str, Any]:
    """Empty object with its zero values. Callers must not modify it. Only built-in types have zero values."""
    if not schema.name:
        return {}
    obj: dict[str, Any] = decode(schema, {})
    return obj
