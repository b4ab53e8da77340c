"""Durations: parsed and written as Go does (`1h30m`, `-1.5s`), and as kubectl shows ages (`5m12s`, `3d`)."""

from __future__ import annotations

import re

from kubist.base.jsontext.quoting import quoted

MICROSECOND, MILLISECOND, SECOND = 10**3, 10**6, 10**9
"""Units of a Go duration, in nanoseconds."""
_UNITS = {
    "ns": 1,
    "us": MICROSECOND,
    "µs": MICROSECOND,
    "μs": MICROSECOND,
    "ms": MILLISECOND,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
}
_TERM = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]*)")
_MOST = 1 << 63
_PRECISE = 40
"""Digits that matter: more digits before the point overflow, and more digits after it change nothing."""


def parse(text: str) -> int:
    """Nanoseconds of a duration. ValueError with Go's message if it is invalid."""
    sign, rest = (-1 if text[:1] == "-" else 1), (text[1:] if text[:1] in ("-", "+") else text)
    if rest == "0":
        return 0
    total, at = 0, 0
    while at < len(rest) or not rest:
        term = _TERM.match(rest, at)
        assert term is not None
        whole, part, unit = term.groups()
        if not whole and not part:
            raise _invalid(text)
        if not unit:
            raise ValueError(f"time: missing unit in duration {quoted(text)}")
        if unit not in _UNITS:
            raise ValueError(f"time: unknown unit {quoted(unit)} in duration {quoted(text)}")
        digits = (part or "")[:_PRECISE]
        if len(whole) > _PRECISE:
            raise _invalid(text)
        total += int((whole or "0") + digits) * _UNITS[unit] // 10 ** len(digits)
        if total > _MOST - (sign > 0):
            raise _invalid(text)
        at = term.end()
    return sign * total


def seconds(text: str) -> float:
    """Seconds of a duration of a flag or schedule. ValueError if it is invalid or negative."""
    nanoseconds = parse(text)
    if nanoseconds < 0:
        raise _invalid(text)
    return nanoseconds / SECOND


def _invalid(text: str) -> ValueError:
    return ValueError(f"time: invalid duration {quoted(text)}")


def written(seconds: float) -> str:
    """Duration in Go's form, such as `1h0m0s`, `1.5s` or `250ms`."""
    sign, rest = "-" if seconds < 0 else "", round(abs(seconds) * SECOND)
    if not rest:
        return "0s"
    for limit, unit, name in (
        (MICROSECOND, 1, "ns"),
        (MILLISECOND, MICROSECOND, "µs"),
        (SECOND, MILLISECOND, "ms"),
    ):
        if rest < limit:
            return f"{sign}{_decimal(rest, unit)}{name}"
    minutes, rest = divmod(rest, 60 * SECOND)
    hours, minutes = divmod(minutes, 60)
    head = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{head}{_decimal(rest, SECOND)}s"


def _decimal(value: int, unit: int) -> str:
    whole, fraction = divmod(value, unit)
    return f"{whole}.{str(unit + fraction)[1:].rstrip('0')}" if fraction else str(whole)


LONGEST = 9223372036
"""Maximum Go duration in seconds. Longer durations count as this one."""
MINUTE, HOUR, DAY = 60, 3600, 86400


def human_duration(seconds: float) -> str:
    """Duration in two or three figures, as kubectl shows ages."""
    return human_duration_and_step(seconds)[0]


def human_duration_and_step(seconds: float) -> tuple[str, int]:
    """Text of `human_duration`, and the number of seconds after which it changes."""
    passed = int(max(min(seconds, LONGEST), -LONGEST))
    if passed < -1:
        return "<invalid>", 1
    if passed < 0:
        return "0s", 1
    if passed < 2 * MINUTE:
        return f"{passed}s", 1
    if passed < 10 * MINUTE:
        return _two_units(passed, MINUTE, "m", 1, "s"), 1
    if passed < 3 * HOUR:
        return f"{passed // MINUTE}m", MINUTE
    if passed < 8 * HOUR:
        return _two_units(passed, HOUR, "h", MINUTE, "m"), MINUTE
    if passed < 48 * HOUR:
        return f"{passed // HOUR}h", HOUR
    if passed < 8 * DAY:
        return _two_units(passed, DAY, "d", HOUR, "h"), HOUR
    if passed < 2 * 365 * DAY:
        return f"{passed // DAY}d", DAY
    if passed < 8 * 365 * DAY:
        return _two_units(passed, 365 * DAY, "y", DAY, "d"), DAY
    return f"{passed // (365 * DAY)}y", 365 * DAY


def _two_units(passed: int, unit: int, name: str, part: int, part_name: str) -> str:
    whole, rest = divmod(passed, unit)
    parts = rest // part
    return f"{whole}{name}{parts}{part_name}" if parts else f"{whole}{name}"
