"""Numbers in text: detection of numbers that change when written, Go's number formats, and parsing as strict as Go's
strconv."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import orjson

_is_decimal = re.compile(r"[+-]?[0-9]{1,64}").fullmatch
odd_number = re.compile(rb"[:\[,]-?\d+(?:\.|e|\d{18})").search
"""Finds a number that may change when it is parsed and written: 1.0, 1e3, or more than 64 bits."""


def unsigned(text: str) -> int | str:
    """Unsigned 64-bit integer, or Go's error message if the text is not one."""
    if not (text.isascii() and text.isdigit()):
        return f'strconv.ParseUint: parsing "{text}": invalid syntax'
    digits = text.lstrip("0") or "0"
    # Python rejects integers with thousands of digits.
    if len(digits) > 20 or (number := int(digits)) >= 1 << 64:
        return f'strconv.ParseUint: parsing "{text}": value out of range'
    return number


def decimal(text: str) -> int:
    """Integer from decimal digits with an optional sign. Python rejects thousands of digits, so only the first 40
    count, which is still too large a number."""
    sign = -1 if text.startswith("-") else 1
    digits = text.lstrip("+-").lstrip("0")
    return sign * int(digits[:40] or "0")


def rounded(value: Any) -> Any:
    """Value with integers beyond 64 bits as floats, as decoding gives them."""
    if isinstance(value, dict):
        return {key: rounded(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [rounded(inner) for inner in value]
    if isinstance(value, int) and not isinstance(value, bool) and not -(1 << 63) <= value < 1 << 63:
        return float(value)
    return value


def canonical(value: Any) -> Any:
    """Value with whole floats as integers, as they are written."""
    if isinstance(value, dict):
        return {key: canonical(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [canonical(inner) for inner in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        whole = int(Decimal(repr(value)))
        return whole if -(1 << 63) <= whole < 1 << 64 else value
    return value


def written(value: Any, exponent_digits: int = 1) -> str:
    """JSON text as Go writes it: only very large and very small floats have an exponent."""
    if isinstance(value, dict):
        inner = (f"{_text(key)}:{written(item, exponent_digits)}" for key, item in value.items())
        return f"{{{','.join(inner)}}}"
    if isinstance(value, list):
        return f"[{','.join(written(item, exponent_digits) for item in value)}]"
    if isinstance(value, int) and not isinstance(value, bool) and not -(1 << 63) <= value < 1 << 63:
        value = float(value)
    if not isinstance(value, float):
        return _text(value)
    number = Decimal(repr(value)).normalize()
    if value == 0 or 1e-6 <= abs(value) < 1e21:
        return f"{number:f}"
    sign, digits, _ = number.as_tuple()
    mantissa = f"{digits[0]}.{''.join(map(str, digits[1:]))}".removesuffix(".")
    exponent = number.adjusted()
    exponent_text = f"{abs(exponent):0{exponent_digits}d}"
    return f"{'-' * sign}{mantissa}e{'-' if exponent < 0 else '+'}{exponent_text}"


def _text(value: Any) -> str:
    return orjson.dumps(value).decode()


PLAIN_POWERS = range(-4, 6)
"""Decimal exponents without exponent notation."""


def go_float(value: float) -> str:
    """Float in Go's `%v` format."""
    if value != value or value in (float("inf"), float("-inf")):
        return {"nan": "NaN", "inf": "+Inf", "-inf": "-Inf"}[str(value)]
    exponent = Decimal(repr(value)).adjusted() if value else 0
    if exponent in PLAIN_POWERS:
        text = repr(value)
        if "e" in text:
            text = f"{value:f}".rstrip("0")
        return text.removesuffix(".0").removesuffix(".")
    sign, digits, _ = Decimal(repr(value)).normalize().as_tuple()
    mantissa = f"{digits[0]}.{''.join(map(str, digits[1:]))}".removesuffix(".")
    return f"{'-' * sign}{mantissa}e{exponent:+03d}"


def parse_int64(text: str) -> int | None:
    """Decimal 64-bit integer. None if `text` is not one."""
    if _is_decimal(text) is None:
        return None
    value = int(text)
    return value if -(2**63) <= value < 2**63 else None
