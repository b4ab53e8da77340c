"""Times in RFC 3339 and UTC: with whole seconds, and micro-times with six digits.

Parsing accepts the same text as Go and has Go's error messages. Years run from 0 to 9999, which `datetime` does
not support.
"""

from __future__ import annotations

import re

from kubist.base import clock
from kubist.base.caching import bounded_cache

RFC3339 = "2006-01-02T15:04:05Z07:00"
RFC3339_MICRO = "2006-01-02T15:04:05.000000Z07:00"

_TIME = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?(Z|[+-][0-9]{2}:[0-9]{2})"
)
_ELEMENTS = (
    ("2006", r"[0-9]{4}"),
    ("-", "-"),
    ("01", r"[0-9]{2}"),
    ("-", "-"),
    ("02", r"[0-9]{2}"),
    ("T", "T"),
    ("15", r"[0-9]{1,2}"),
    (":", ":"),
    ("04", r"[0-9]{2}"),
    (":", ":"),
    ("05", r"[0-9]{2}"),
)
_MICRO_FRACTION = (".000000", r"[.,][0-9]{6}")
_FRACTION = ("", r"(?:[.,][0-9]+)?")
_ZONE = ("Z07:00", r"Z|[+-][0-9]{2}:[0-9]{2}")

_ZERO = -62135596800
"""First second of year 1, Go's zero time, which means no time."""


_second = 0
_stamp = ""


def now() -> str:
    """Current time with whole seconds. Formatted at most once per second."""
    global _second, _stamp
    second = int(clock.now())
    if second != _second:
        _second, _stamp = second, format_time(second)
    return _stamp


def today() -> str:
    """Current date in UTC."""
    return now()[:10]


def now_micro() -> str:
    return format_micro_time(*divmod(int(clock.now() * 1e6), 10**6))


@bounded_cache(entries=4096, key_length=64)
def parse_time(text: str) -> int:
    """Seconds since 1970. ValueError if the text is not RFC 3339."""
    return _read(text, RFC3339)[0]


@bounded_cache(entries=4096, key_length=64)
def parse_micro_time(text: str) -> tuple[int, int]:
    """Seconds since 1970 and microseconds. ValueError unless the fraction has six digits."""
    return _read(text, RFC3339_MICRO)


@bounded_cache(entries=4096, key_length=64)
def canonical_time(text: str) -> str | None:
    """Time in canonical form. None for the zero time, which is written as null."""
    seconds = parse_time(text)
    return format_time(seconds) if seconds != _ZERO else None


@bounded_cache(entries=4096, key_length=64)
def canonical_micro_time(text: str) -> str | None:
    seconds, micros = parse_micro_time(text)
    return format_micro_time(seconds, micros) if (seconds, micros) != (_ZERO, 0) else None


def format_time(seconds: int) -> str:
    return _format(seconds) + "Z"


def format_micro_time(seconds: int, micros: int) -> str:
    return f"{_format(seconds)}.{micros:06}Z"


def is_zero(seconds: int) -> bool:
    return seconds == _ZERO


def _read(text: str, layout: str) -> tuple[int, int]:
    match = _TIME.fullmatch(text)
    micro = layout is RFC3339_MICRO
    if match is None or (micro and len(match[7] or "") != 6):
        raise ValueError(_complaint(text, layout))
    year, month, day, hour, minute, second = map(int, match.groups()[:6])
    for name, wrong in (
        ("month", not 1 <= month <= 12),
        ("hour", hour > 23),
        ("minute", minute > 59),
        ("second", second > 59),
        ("day", not 1 <= day <= _days_in(year, month)),
    ):
        if wrong:
            raise ValueError(f'parsing time "{text}": {name} out of range')
    seconds = _days(year, month, day) * 86400 + hour * 3600 + minute * 60 + second
    if (zone := match[8]) != "Z":
        if int(zone[1:3]) > 24:
            raise ValueError(f'parsing time "{text}": time zone offset hour out of range')
        if int(zone[4:6]) > 60:
            raise ValueError(f'parsing time "{text}": time zone offset minute out of range')
        offset = int(zone[1:3]) * 3600 + int(zone[4:6]) * 60
        seconds += offset if zone[0] == "-" else -offset
    return seconds, int((match[7] or "0").ljust(6, "0")[:6])


def _complaint(text: str, layout: str) -> str:
    fraction = _MICRO_FRACTION if layout is RFC3339_MICRO else _FRACTION
    at = 0
    for element, pattern in (*_ELEMENTS, fraction, _ZONE):
        match = re.compile(pattern).match(text, at)
        if match is None:
            return f'parsing time "{text}" as "{layout}": cannot parse "{text[at:]}" as "{element}"'
        at = match.end()
    return f'parsing time "{text}": extra text: "{text[at:]}"'


def _format(seconds: int) -> str:
    days, rest = divmod(seconds, 86400)
    year, month, day = _date(days)
    return f"{year:04}-{month:02}-{day:02}T{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"


def _days_in(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def _days(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the proleptic Gregorian calendar. Years are counted from March."""
    if month <= 2:
        year -= 1
    month = (month + 9) % 12
    return year * 365 + year // 4 - year // 100 + year // 400 + (month * 153 + 2) // 5 + day - 1 - 719468


def _date(days: int) -> tuple[int, int, int]:
    era, of_era = divmod(days + 719468, 146097)
    of_era_year = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    of_year = of_era - (365 * of_era_year + of_era_year // 4 - of_era_year // 100)
    month = (5 * of_year + 2) // 153
    day = of_year - (153 * month + 2) // 5 + 1
    year = era * 400 + of_era_year + (month >= 10)
    return year, month + 3 if month < 10 else month - 9, day
