"""Cron schedules: the next time after a moment. Schedules are already validated."""

from __future__ import annotations

import datetime
import zoneinfo
from typing import NamedTuple

from kubist.base.caching import bounded_cache
from kubist.model.meta.durations import seconds

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
MINUTE = 60


class Field(NamedTuple):
    """Values of one field. `is_any` means that the field restricts nothing, like `*`."""

    values: frozenset[int]
    is_any: bool


class Schedule(NamedTuple):
    """Parsed schedule. `delay` is the period of `@every` in seconds; the other fields are then unused."""

    minutes: Field
    hours: Field
    days: Field
    months: Field
    weekdays: Field
    zone: datetime.tzinfo
    delay: int = 0

    def next_after(self, moment: float) -> int | None:
        """First Unix time after `moment` at which the schedule fires. None if there is none within YEARS.

        Local times that a daylight saving change skips do not fire. Times that it repeats fire twice.
        """
        if self.delay:
            return int(moment) + self.delay
        start = int(moment) // MINUTE * MINUTE + MINUTE
        day = datetime.datetime.fromtimestamp(start, self.zone).date()
        last = day.replace(year=day.year + YEARS, day=min(day.day, 28))
        while day <= last:
            if day.month not in self.months.values:
                day = _first_of_next_month(day)
                continue
            following = day + datetime.timedelta(days=1)
            if self._fires_on(day):
                fire_time = self._next_within(
                    max(start, _midnight(day, self.zone)), _midnight(following, self.zone)
                )
                if fire_time is not None:
                    return fire_time
            day = following
        return None

    def _fires_on(self, day: datetime.date) -> bool:
        by_day = day.day in self.days.values
        by_weekday = (day.weekday() + 1) % 7 in self.weekdays.values
        if self.days.is_any or self.weekdays.is_any:
            return by_day and by_weekday
        return by_day or by_weekday

    def _next_within(self, moment: int, end: int) -> int | None:
        """First time of a day from `moment` on. `end` is the following midnight."""
        while moment < end:
            local = datetime.datetime.fromtimestamp(moment, self.zone)
            if local.hour not in self.hours.values:
                moment += (60 - local.minute) * MINUTE
            elif local.minute in self.minutes.values:
                return moment
            else:
                moment += MINUTE
        return None


_NOTHING = Field(frozenset(), is_any=False)


@bounded_cache(entries=1024, key_length=1024)
def parse(text: str, zone: str) -> Schedule:
    """Reads a schedule. A time zone in its text wins over `zone`."""
    if text.startswith(("TZ=", "CRON_TZ=")):
        zone, _, text = text.partition("=")[2].partition(" ")
    text = text.strip()
    where = zoneinfo.ZoneInfo(zone) if zone not in ("", "Local", "UTC") else datetime.UTC
    if text.startswith("@every "):
        delay = max(int(seconds(text[7:].strip())), 1)
        return Schedule(_NOTHING, _NOTHING, _NOTHING, _NOTHING, _NOTHING, where, delay)
    fields = WORDS.get(text, text).split()
    minutes, hours, days, months, weekdays = (
        _field(part, *bounds) for part, bounds in zip(fields, BOUNDS, strict=True)
    )
    return Schedule(minutes, hours, days, months, weekdays, where)


def _field(text: str, low: int, high: int) -> Field:
    values: set[int] = set()
    is_any = False
    for part in filter(None, text.split(",")):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        if first in ("*", "?"):
            start, end = low, high
            is_any = is_any or int(step or 1) == 1
        else:
            start = _number(first)
            end = _number(last) if last else high if step else start
        values.update(range(start, end + 1, int(step or 1)))
    return Field(frozenset(values), is_any)


def _number(text: str) -> int:
    text = text.lower()
    if text in MONTHS:
        return MONTHS.index(text) + 1
    return DAYS.index(text) if text in DAYS else int(text)


def _midnight(day: datetime.date, zone: datetime.tzinfo) -> int:
    return int(datetime.datetime.combine(day, datetime.time(), zone).timestamp())


def _first_of_next_month(day: datetime.date) -> datetime.date:
    return day.replace(year=day.year + day.month // 12, month=day.month % 12 + 1, day=1)
