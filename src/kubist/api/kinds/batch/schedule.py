"""Cron schedules: five fields of numbers, names, ranges, lists and steps, or a descriptor such as `@daily`."""

from __future__ import annotations

import re
import zoneinfo
from dataclasses import dataclass, field

from kubist.base.jsontext.quoting import quoted
from kubist.model.meta import durations
from kubist.model.meta.numerals import parse_int64


class ScheduleError(ValueError):
    """Invalid schedule or time zone. The text is shown to the client."""


@dataclass(slots=True, frozen=True)
class _Bounds:
    low: int
    high: int
    names: dict[str, int] = field(default_factory=dict)


_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
_FIELDS = (
    _Bounds(0, 59),
    _Bounds(0, 23),
    _Bounds(1, 31),
    _Bounds(1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    _Bounds(0, 6, {name: number for number, name in enumerate(_DAYS)}),
)
_WORDS = {"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}


def check_schedule(text: str) -> None:
    """Raises ScheduleError if the schedule is invalid."""
    if text.startswith(("TZ=", "CRON_TZ=")):
        zone, blank, rest = text.partition("=")[2].partition(" ")
        if not blank:
            raise ScheduleError("cron schedule parse panic: a time zone must be followed by a schedule")
        try:
            check_time_zone(zone)
        except ScheduleError as error:
            raise ScheduleError(f"provided bad location {zone}: {error}") from None
        text = rest.strip()
    if text.startswith("@"):
        _check_word(text)
        return
    parts = text.split()
    if len(parts) != len(_FIELDS):
        schedule = " ".join(parts)
        raise ScheduleError(f"expected exactly {len(_FIELDS)} fields, found {len(parts)}: [{schedule}]")
    for part, bounds in zip(parts, _FIELDS, strict=True):
        for expression in filter(None, part.split(",")):
            _check_range(expression, bounds)


def _check_word(text: str) -> None:
    if text in _WORDS:
        return
    if not text.startswith("@every "):
        raise ScheduleError(f"unrecognized descriptor: {text}")
    duration = text.removeprefix("@every ")
    try:
        durations.parse(duration)
    except ValueError as error:
        raise ScheduleError(f"failed to parse duration {text}: {error}") from None


def _check_range(expression: str, bounds: _Bounds) -> None:
    limits, *steps = expression.split("/")
    first, *rest = limits.split("-")
    if first in ("*", "?"):
        start, end = bounds.low, bounds.high
    else:
        start = end = _number(first, bounds.names)
        if rest:
            end = _number(rest[0], bounds.names)
        if len(rest) > 1:
            raise ScheduleError(f"too many hyphens: {expression}")
    step = 1
    if steps:
        if len(steps) > 1:
            raise ScheduleError(f"too many slashes: {expression}")
        step = _number(steps[0], {})
        if not rest:
            end = bounds.high
    if start < bounds.low:
        raise ScheduleError(f"beginning of range ({start}) below minimum ({bounds.low}): {expression}")
    if end > bounds.high:
        raise ScheduleError(f"end of range ({end}) above maximum ({bounds.high}): {expression}")
    if start > end:
        raise ScheduleError(f"beginning of range ({start}) beyond end of range ({end}): {expression}")
    if step == 0:
        raise ScheduleError(f"step of range should be a positive number: {expression}")


def _number(text: str, names: dict[str, int]) -> int:
    if text.lower() in names:
        return names[text.lower()]
    number = parse_int64(text)
    if number is None:
        fault = "value out of range" if text.lstrip("+-").isdigit() else "invalid syntax"
        why = f"strconv.Atoi: parsing {quoted(text)}: {fault}"
        raise ScheduleError(f"failed to parse int from {text}: {why}")
    if number < 0:
        raise ScheduleError(f"negative number ({number}) not allowed: {text}")
    return number


_is_zone_part = re.compile(r"[A-Za-z.\-_0-9+]{1,14}").fullmatch


def check_time_zone(name: str) -> None:
    """Raises ScheduleError if the time zone is unknown. `Local` is the server's own time zone."""
    unknown = ScheduleError(f"unknown time zone {name}")
    for part in name.split("/"):
        if part in (".", "..") or part.startswith("-") or not _is_zone_part(part):
            raise unknown
    if name == "Local":
        return
    try:
        zoneinfo.ZoneInfo(name)
    except (OSError, ValueError, zoneinfo.ZoneInfoNotFoundError):
        raise unknown from None
