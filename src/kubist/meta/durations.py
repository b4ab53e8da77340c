"""Durations in Go's form, such as `1h30m` or `-1.5s`, and the error messages of Go's parser."""

from __future__ import annotations

import re

from kubist.meta.fields import quoted

_UNITS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_TERM = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]*)")
_MOST = 1 << 63
_PRECISE = 40
"""Digits that matter: more digits before the point overflow, and more digits after it change nothing."""


def wrong(text: str) -> str:
    """Go's error message for an invalid duration. Empty if it is valid."""
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return ""
    total, at = 0, 0
    while at < len(rest) or not rest:
        term = _TERM.match(rest, at)
        assert term is not None
        whole, part, unit = term.groups()
        if not whole and not part:
            return f"time: invalid duration {quoted(text)}"
        if not unit:
            return f"time: missing unit in duration {quoted(text)}"
        if unit not in _UNITS:
            return f"time: unknown unit {quoted(unit)} in duration {quoted(text)}"
        digits = (part or "")[:_PRECISE]
        if len(whole) > _PRECISE:
            return f"time: invalid duration {quoted(text)}"
        total += int((whole or "0") + digits) * _UNITS[unit] // 10 ** len(digits)
        if total > _MOST - (text[0] != "-"):
            return f"time: invalid duration {quoted(text)}"
        at = term.end()
    return ""


_UNIT_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(h|ms|m|s|us|µs|ns)")


def seconds(text: str) -> float:
    """Seconds of a duration of a flag or schedule, such as `1h30m`. ValueError for any other text."""
    if text == "0":
        return 0.0
    if not text or "".join(match[0] for match in _PART.finditer(text)) != text:
        raise ValueError(f'time: invalid duration "{text}"')
    return sum(float(match[1]) * _UNIT_SECONDS[match[2]] for match in _PART.finditer(text))
