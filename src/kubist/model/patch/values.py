"""Plain JSON values: equality, and their form in error messages."""

from __future__ import annotations

from typing import Any

from kubist.base.jsontext.quoting import quoted
from kubist.model.meta.numerals import go_float


def equal(left: Any, right: Any) -> bool:
    """Whether two values are equal as JSON texts. 1, 1.0 and true differ."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return len(left) == len(right) and all(k in right and equal(v, right[k]) for k, v in left.items())
    if isinstance(left, list):
        return len(left) == len(right) and all(map(equal, left, right))
    return bool(left == right)


_GO_TYPES = {
    dict: "map[string]interface {}",
    list: "[]interface {}",
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
}


def go_type(value: Any) -> str:
    """Go type of a value, as error messages name it."""
    return _GO_TYPES.get(type(value), "%!s(<nil>)")


def format_value(value: Any) -> str:
    """Value in Go's %v form: maps as `map[a:1 b:2]`, lists as `[1 2]`."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{format_value(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(format_value(item) for item in value)}]"
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return go_float(value)
    return str(value)


def go_syntax(value: Any) -> str:
    """Value in Go's %#v form: `map[string]interface {}{"a":1}`."""
    if isinstance(value, dict):
        inner = ", ".join(f"{quoted(key)}:{go_syntax(value[key])}" for key in sorted(value))
        return f"{_GO_TYPES[dict]}{{{inner}}}"
    if isinstance(value, list):
        return f"{_GO_TYPES[list]}{{{', '.join(map(go_syntax, value))}}}"
    if value is None:
        return "interface {}(nil)"
    return quoted(value) if isinstance(value, str) else format_value(value)
