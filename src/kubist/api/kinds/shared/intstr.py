"""Integers or percentages, for example `1` or `"25%"`."""

from __future__ import annotations

import re

from kubist.api.kinds.shared.numbers import nonnegative
from kubist.model.meta import names
from kubist.model.meta.fields import FieldError, invalid
from kubist.model.meta.numerals import decimal, parse_int64

IntOrString = int | str

_PERCENT = "[0-9]+%"
_is_percent = re.compile(_PERCENT).fullmatch
_PERCENT_MESSAGE = names.regex_error(
    "a valid percent string must be a numeric string followed by an ending '%'", _PERCENT, "1%", "93%"
)


def validate_int_or_percent(value: IntOrString, path: str) -> list[FieldError]:
    """Validates a non-negative integer or a percentage."""
    if isinstance(value, int):
        return nonnegative(value, path)
    return [] if _is_percent(value) else [invalid(path, value, _PERCENT_MESSAGE)]


def validate_at_most_100_percent(value: IntOrString, path: str) -> list[FieldError]:
    """Rejects percentages above 100%. Integers are valid."""
    if (percent(value) or 0) <= 100:
        return []
    return [invalid(path, value, "must not be greater than 100%")]


def percent(value: IntOrString) -> int | None:
    """Number before the percent sign; None for other values."""
    return decimal(value[:-1]) if isinstance(value, str) and _is_percent(value) else None


def int_or_percent_value(value: IntOrString) -> int:
    """Integer, or number before the percent sign. Other text is parsed as an integer, or is 0."""
    if isinstance(value, int):
        return value
    share = percent(value)
    return share if share is not None else parse_int64(value) or 0
