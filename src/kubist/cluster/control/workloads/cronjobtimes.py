"""Start times of a CronJob: the latest time that was missed, and the time to look again."""

from __future__ import annotations

from typing import NamedTuple

from kubist.cluster.control.workloads.cron import Schedule
from kubist.model.meta.object import Object
from kubist.model.meta.times import parse_time

MANY = 100
"""Number of missed times above which the controller warns."""
DELTA = 0.1
"""Seconds after a scheduled time at which the controller looks, so that the time has passed for certain."""


class ScheduleError(ValueError):
    """Schedule that never fires."""


class Missed(NamedTuple):
    """Scheduled times up to now that no Job was started for."""

    since: float
    """Time from which on scheduled times count."""
    latest: int | None = None
    number: int = 0
    """Number of missed times, estimated by the first two. 0 if at most one was missed."""


def missed_times(cronjob: Object, schedule: Schedule, now: float, *, deadline: bool = True) -> Missed:
    """Finds the latest missed time. With `deadline`, startingDeadlineSeconds limits how far to look back."""
    held = cronjob["status"].get("lastScheduleTime") or cronjob["metadata"]["creationTimestamp"]
    since: float = parse_time(held)
    limit = cronjob["spec"].get("startingDeadlineSeconds")
    if deadline and limit is not None:
        since = max(since, now - limit)
    first = schedule.next_after(since)
    if first is not None and now < first:
        return Missed(since)
    second = schedule.next_after(first) if first is not None else None
    if first is None or second is None:
        raise ScheduleError("time difference between two schedules is less than 1 second")
    if now < second:
        return Missed(since, first)
    period = second - first
    count = int(now - first) // period + 1
    latest = None
    following = schedule.next_after(first + (count - 2) * period)
    while following is not None and following <= now:
        latest, following = following, schedule.next_after(following)
    return Missed(since, latest, count)


def seconds_to_next(cronjob: Object, schedule: Schedule, now: float) -> float | None:
    """Seconds until the controller must look at the CronJob again. None if the schedule never fires."""
    try:
        missed = missed_times(cronjob, schedule, now, deadline=False)
    except ScheduleError:
        start = now
    else:
        start = missed.latest or (now if missed.number else missed.since)
    following = schedule.next_after(start)
    return None if following is None else max(following + DELTA - now, 0.0)


def is_too_late(cronjob: Object, scheduled: int, now: float) -> bool:
    limit = cronjob["spec"].get("startingDeadlineSeconds")
    return limit is not None and scheduled + limit < now
