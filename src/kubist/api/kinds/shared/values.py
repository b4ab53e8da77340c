"""Rules about single values: non-negative numbers, integers or percentages, ports, and repeated values."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from typing import Any

from kubist.model.meta import names
from kubist.model.meta.fields import FieldError, invalid, not_supported, required
from kubist.model.meta.numerals import decimal, parse_int64

PROTOCOLS = ("SCTP", "TCP", "UDP")
MAX_PORT = 65535
IntOrString = int | str

_NEGATIVE = "must be greater than or equal to 0"
_PERCENT = "[0-9]+%"
_is_percent = re.compile(_PERCENT).fullmatch
_PERCENT_MESSAGE = names.regex_error(
    "a valid percent string must be a numeric string followed by an ending '%'", _PERCENT, "1%", "93%"
)


def nonnegative(value: int | None, path: str) -> list[FieldError]:
    """Rejects a negative number. None is valid."""
    if value is None or value >= 0:
        return []
    return [invalid(path, value, _NEGATIVE)]


def nonnegative_fields(obj: dict[str, Any], path: str, fields: Iterable[str]) -> list[FieldError]:
    """Rejects negative numbers in these fields of an object."""
    return [
        invalid(f"{path}.{field}", value, _NEGATIVE)
        for field in fields
        if (value := obj.get(field)) is not None and value < 0
    ]


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


def validate_port(number: int, path: str) -> list[FieldError]:
    return [invalid(path, number, message) for message in names.port_number(number)]


def validate_port_or_name(port: int | str, path: str) -> list[FieldError]:
    """Validates a target port. An absent port counts as 0, which is invalid."""
    messages = names.port_name(port) if isinstance(port, str) else names.port_number(port)
    return [invalid(path, port, message) for message in messages]


def validate_protocol(protocol: str, path: str) -> list[FieldError]:
    if not protocol:
        return [required(path)]
    return [] if protocol in PROTOCOLS else [not_supported(path, protocol, PROTOCOLS)]


def repeats(values: Iterable[Hashable]) -> list[int]:
    """Indexes of values that occurred before."""
    seen: set[Hashable] = set()
    indexes = []
    for index, value in enumerate(values):
        if value in seen:
            indexes.append(index)
        seen.add(value)
    return indexes
