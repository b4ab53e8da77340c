"""JSON numbers in validation: integer test, range of formats, limits, enum equality."""

from __future__ import annotations

import math
import struct
from decimal import Decimal
from typing import Any

from kubist.model.meta.numerals import go_float

Props = dict[str, Any]

_MAX_JSON_INTEGER = float((1 << 53) - 1)
TYPE_NAMES: dict[type, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    list: "array",
    dict: "object",
}


def is_integer(value: float) -> bool:
    """Whether a float counts as an integer: its absolute value is at most 2^53-1, and it is within a relative
    difference of 1e-9 of an integer."""
    if math.isnan(value) or math.isinf(value) or abs(value) > _MAX_JSON_INTEGER:
        return False
    nearest = math.trunc(value)
    if value == nearest:
        return True
    difference = abs(value - nearest)
    return difference / (abs(value) + abs(nearest)) < 1e-9 if nearest else difference < 1e-9 * 5e-324


def fits_type(value: Any, types: tuple[str, ...], format_: str) -> bool:
    """Whether a non-null value has one of the types. With a format and no numeric type, every string and array fits."""
    kind = TYPE_NAMES[value.__class__]
    numeric = "number" in types or "integer" in types
    if format_ and not numeric and kind in ("string", "array"):
        return True
    if kind in types:
        return True
    if kind == "integer" and "number" in types:
        return True
    return kind == "number" and "integer" in types and is_integer(value)


def in_range(value: float, types: tuple[str, ...], format_: str) -> bool:
    """Whether a number fits the type and format (int32, int64, float)."""
    if types == ("integer",):
        bits = 31 if format_ == "int32" else 63
        if isinstance(value, float):
            if not value.is_integer():
                return False
            value = int(Decimal(repr(value)))  # shortest decimal form, which kube-apiserver parses again
        return -(1 << bits) <= value < 1 << bits
    if format_ == "float":
        try:
            struct.pack("<f", value)
        except (OverflowError, struct.error):
            return False
    return True


def native(value: Any) -> Any:
    """The value with integers beyond 64 bits as floats, as in kube-apiserver's decoder."""
    if value.__class__ is int and not -(1 << 63) <= value < 1 << 63:
        return float(value)
    return value


def problems(
    props: Props, types: tuple[str, ...], format_: str, value: Any, path: str
) -> list[tuple[str, str]]:
    """Violations of a number as (keyword, message). The keyword is empty if kube-apiserver names no field for it."""
    value = native(value)
    errors: list[tuple[str, str]] = []
    form = f"with format {format_}" if format_ else "(default format)"
    expected = f"{types[0]} {form}" if types else "number"

    def ranged(number: Any, word: str) -> bool:
        if in_range(number, types, format_):
            return True
        errors.append(("", f"{word} value must be of type {expected} in {path}"))
        return False

    ranged(value, "Checked")
    factor = props.get("multipleOf")
    if factor is not None:
        exact = ranged(factor, "MultipleOf") and isinstance(value, int)
        if not _multiple(value, factor, exact):
            errors.append(
                ("multipleOf", f"{path} in body should be a multiple of {format_limit(factor, exact)}")
            )
    for field, below in (("minimum", True), ("maximum", False)):
        bound = props.get(field)
        if bound is None:
            continue
        native_limit = ranged(bound, f"{field.capitalize()} boundary") and isinstance(value, int)
        limit = int(bound) if native_limit else float(bound)
        exclusive = bool(props.get(f"exclusive{field.capitalize()}"))
        if (value < limit if below else value > limit) or (exclusive and value == limit):
            word = ("greater than" if below else "less than") + ("" if exclusive else " or equal to")
            errors.append((field, f"{path} in body should be {word} {format_limit(limit, native_limit)}"))
    return errors


def _multiple(value: float, factor: float, exact: bool) -> bool:
    if exact:
        whole = int(factor)
        return whole > 0 and value % whole == 0
    if factor <= 0:
        return False
    return is_integer(1 / factor * value if factor < 1 else value / factor)


def format_limit(limit: float, exact: bool) -> str:
    return str(int(limit)) if exact else go_float(float(limit))


def is_one_of(value: Any, enum: list[Any]) -> bool:
    """Whether the enum contains the value. Null never matches; 1 equals 1.0, but true does not equal 1."""
    if value is None:
        return False
    return any(same(_converted(value, allowed), allowed) for allowed in enum if allowed is not None)


def _converted(value: Any, choice: Any) -> Any:
    """The number converted to the type of the enum value, as kube-apiserver converts it: a float is truncated to an
    integer, and an integer becomes the character with that code point."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    if isinstance(value, float) and isinstance(choice, int):
        return int(value) if math.isfinite(value) else value
    if isinstance(value, int) and isinstance(choice, str):
        return chr(value) if 0 <= value < 0x110000 and not 0xD800 <= value < 0xE000 else "\ufffd"
    return value


def same(a: Any, b: Any) -> bool:
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)
