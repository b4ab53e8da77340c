"""Next time of a cron schedule. Schedules are already validated."""

from __future__ import annotations

import datetime
import zoneinfo
from typing import NamedTuple

from kubist.meta.durations import seconds

WORDS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
YEARS = 5
"""Maximum number of years to look ahead, because some schedules (February 30) never fire."""


class Schedule(NamedTuple):
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    any_weekday: bool

    def on(self, day: datetime.date) -> bool:
        if day.month not in self.months:
            return False
        by_day, by_weekday = day.day in self.days, (day.weekday() + 1) % 7 in self.weekdays
        return (by_day and by_weekday) if self.any_day or self.any_weekday else (by_day or by_weekday)


def next_after(text: str, zone: str, moment: datetime.datetime) -> datetime.datetime | None:
    """First time after `moment` (UTC) at which a schedule fires; None if there is none within YEARS."""
    if text.startswith(("TZ=", "CRON_TZ=")):
        zone, _, text = text.partition("=")[2].partition(" ")
    text = text.strip()
    if text.startswith("@every "):
        return moment + datetime.timedelta(seconds=max(seconds(text[7:].strip()), 1))
    schedule = parse(WORDS.get(text, text))
    where = zoneinfo.ZoneInfo(zone) if zone and zone != "Local" else datetime.UTC
    local = (moment + datetime.timedelta(minutes=1)).replace(second=0, microsecond=0).astimezone(where)
    last = local.date() + datetime.timedelta(days=366 * YEARS)
    day = local.date()
    while day <= last:
        if schedule.on(day):
            for hour in sorted(schedule.hours):
                for minute in sorted(schedule.minutes):
                    at = datetime.datetime.combine(day, datetime.time(hour, minute), where)
                    if at >= local:
                        return at.astimezone(datetime.UTC)
        day += datetime.timedelta(days=1)
    return None


def parse(text: str) -> Schedule:
    fields = text.split()
    minutes, hours, days, months, weekdays = (
        _values(field, *bounds) for field, bounds in zip(fields, BOUNDS, strict=True)
    )
    return Schedule(minutes, hours, days, months, weekdays, fields[2][0] in "*?", fields[4][0] in "*?")


def _values(field: str, low: int, high: int) -> frozenset[int]:
    found: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        if first in ("*", "?"):
            start, end = low, high
        else:
            start = _number(first)
            end = _number(last) if last else high if step else start
        found.update(range(start, end + 1, int(step or 1)))
    return frozenset(found)


def _number(text: str) -> int:
    text = text.lower()
    if text in MONTHS:
        return MONTHS.index(text) + 1
    return DAYS.index(text) if text in DAYS else int(text)
