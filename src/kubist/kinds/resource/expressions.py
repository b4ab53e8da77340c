"""Where the CEL expressions that select devices are compiled when they are written."""

from __future__ import annotations

from kubist.kinds.strategy import Errors, Object
from kubist.meta import fields

_MAX_LENGTH = 10 * 1024


def check(expression: str) -> str | None:
    """Compile an expression over `device` that gives a bool: what is wrong with it, or None. Nothing is until
    an expression can be compiled."""
    return None


def validate_selector(selector: Object, path: str) -> Errors:
    cel = selector.get("cel")
    if cel is None:
        return [fields.required(f"{path}.cel")]
    expression = cel.get("expression", "")
    if len(expression.encode()) > _MAX_LENGTH:
        return [fields.too_long(f"{path}.cel.expression", _MAX_LENGTH)]
    wrong = check(expression)
    return [fields.invalid(f"{path}.cel.expression", expression, wrong)] if wrong else []
