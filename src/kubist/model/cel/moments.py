"""Accessors of timestamps and durations (getFullYear, getHours, …), with optional time zones."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kubist.model.cel.errors import EvaluationError, NoSuchOverload
from kubist.model.cel.values import Duration, Timestamp


def _zone(name: str) -> datetime.tzinfo:
    if re.fullmatch(r"[+-]?\d\d:\d\d", name):
        sign = -1 if name[0] == "-" else 1
        hours, minutes = name.lstrip("+-").split(":")
        return datetime.timezone(sign * datetime.timedelta(hours=int(hours), minutes=int(minutes)))
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise EvaluationError(f"unknown time zone {name}") from None


def _moment(part: Callable[[datetime.datetime], int], of_duration: int = 0) -> Callable[..., int]:
    def get(value: Any, zone: str = "") -> int:
        if isinstance(value, Timestamp):
            return part(value.datetime(_zone(zone) if zone else datetime.UTC))
        if isinstance(value, Duration) and of_duration:
            whole = abs(value.nanoseconds) // of_duration
            return whole if value.nanoseconds >= 0 else -whole
        raise NoSuchOverload

    return get


MOMENTS: dict[str, Callable[..., int]] = {
    "getFullYear": _moment(lambda moment: moment.year),
    "getMonth": _moment(lambda moment: moment.month - 1),
    "getDayOfYear": _moment(lambda moment: moment.timetuple().tm_yday - 1),
    "getDayOfMonth": _moment(lambda moment: moment.day - 1),
    "getDate": _moment(lambda moment: moment.day),
    "getDayOfWeek": _moment(lambda moment: moment.isoweekday() % 7),
    "getHours": _moment(lambda moment: moment.hour, 3600 * 10**9),
    "getMinutes": _moment(lambda moment: moment.minute, 60 * 10**9),
    "getSeconds": _moment(lambda moment: moment.second, 10**9),
    "getMilliseconds": _moment(lambda moment: moment.microsecond // 1000, 10**6),
}
