"""Cron schedules and the missed times of a CronJob."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from kubist.cluster.control.workloads import cron_schedule
from kubist.cluster.control.workloads.cronjob import (
    MANY,
    ScheduleError,
    is_too_late,
    job_name,
    missed_times,
    new_job,
    seconds_to_next,
)
from kubist.model.meta.object import Object
from kubist.model.meta.times import format_time, parse_time


def at(text: str) -> int:
    return int(datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC).timestamp())


def shown(moment: float | None) -> str | None:
    return None if moment is None else format_time(int(moment))[:16]


@pytest.mark.parametrize(
    ("schedule", "after", "following"),
    [
        ("* * * * *", "2026-03-01T10:00:00", "2026-03-01T10:01"),
        ("* * * * *", "2026-03-01T10:00:59", "2026-03-01T10:01"),
        ("*/15 * * * *", "2026-03-01T10:14:59", "2026-03-01T10:15"),
        ("5,,10 * * * *", "2026-03-01T10:05", "2026-03-01T10:10"),
        ("30 3 * * *", "2026-03-01T03:30", "2026-03-02T03:30"),
        ("0 0 1 jan *", "2026-03-01T00:00", "2027-01-01T00:00"),
        ("0 9-17/4 * * mon-fri", "2026-02-27T17:00", "2026-03-02T09:00"),
        ("0 0 13 * fri", "2026-03-01T00:00", "2026-03-06T00:00"),
        ("0 0 */10 * fri", "2026-03-01T00:00", "2026-03-06T00:00"),
        ("0 0 13 * *", "2026-03-01T00:00", "2026-03-13T00:00"),
        ("0 0 13 * */1", "2026-03-01T00:00", "2026-03-13T00:00"),
        ("0 0 ? * 0", "2026-03-01T00:00", "2026-03-08T00:00"),
        ("0 0 29 2 *", "2026-03-01T00:00", "2028-02-29T00:00"),
        ("0 0 30 2 *", "2026-03-01T00:00", None),
        ("@hourly", "2026-03-01T10:00", "2026-03-01T11:00"),
        ("@weekly", "2026-03-01T00:00", "2026-03-08T00:00"),
        ("@yearly", "2026-03-01T00:00", "2027-01-01T00:00"),
        ("@every 1h30m", "2026-03-01T10:00", "2026-03-01T11:30"),
        ("TZ=Europe/Berlin 0 12 * * *", "2026-07-01T00:00", "2026-07-01T10:00"),
        ("CRON_TZ=America/New_York 0 12 * * *", "2026-07-01T00:00", "2026-07-01T16:00"),
    ],
)
def test_next_time_of_a_schedule(schedule: str, after: str, following: str | None) -> None:
    assert shown(cron_schedule.parse(schedule, "").next_after(at(after))) == following


def test_short_every_is_one_second() -> None:
    assert cron_schedule.parse("@every 10ms", "").next_after(100.7) == 101
    assert cron_schedule.parse("@every 2500ms", "").next_after(100) == 102


def test_time_that_daylight_saving_skips_does_not_fire() -> None:
    schedule = cron_schedule.parse("30 2 * * *", "Europe/Berlin")
    assert shown(schedule.next_after(at("2026-03-28T01:30"))) == "2026-03-30T00:30"


def test_time_that_daylight_saving_repeats_fires_twice() -> None:
    schedule = cron_schedule.parse("30 2 * * *", "Europe/Berlin")
    first = schedule.next_after(at("2026-10-24T12:00"))
    assert first is not None
    second = schedule.next_after(first)
    assert (shown(first), shown(second)) == ("2026-10-25T00:30", "2026-10-25T01:30")


def cronjob(schedule: str = "0 * * * *", last: str = "", **spec: Any) -> Object:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"template": {}}}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "c", "uid": "u", "creationTimestamp": "2026-03-01T09:30:00Z"},
        "spec": {"schedule": schedule, "jobTemplate": template, **spec},
        "status": {"lastScheduleTime": last} if last else {},
    }


@pytest.mark.parametrize(
    ("held", "now", "latest", "number"),
    [
        (cronjob(), "2026-03-01T09:59:59", None, 0),
        (cronjob(), "2026-03-01T10:00", "2026-03-01T10:00", 0),
        (cronjob(), "2026-03-01T10:59", "2026-03-01T10:00", 0),
        (cronjob(), "2026-03-01T12:10", "2026-03-01T12:00", 3),
        (cronjob(), "2026-03-09T12:10", "2026-03-09T12:00", 195),
        (cronjob(last="2026-03-01T12:00:00Z"), "2026-03-01T12:10", None, 0),
        (cronjob(startingDeadlineSeconds=900), "2026-03-09T12:10", "2026-03-09T12:00", 0),
        (cronjob(startingDeadlineSeconds=300), "2026-03-09T12:10", None, 0),
        (cronjob("59 23 31 2 *"), "2026-03-09T12:10", "error", 0),
    ],
)
def test_latest_missed_time(held: Object, now: str, latest: str | None, number: int) -> None:
    schedule = cron_schedule.parse(held["spec"]["schedule"], "")
    if latest == "error":
        with pytest.raises(
            ScheduleError, match="time difference between two schedules is less than 1 second"
        ):
            missed_times(held, schedule, at(now))
        return
    missed = missed_times(held, schedule, at(now))
    assert (shown(missed.latest), missed.number) == (latest, number)
    assert (missed.number > MANY) == (number == 195)


@pytest.mark.parametrize(
    ("held", "now", "following"),
    [
        (cronjob(), "2026-03-01T09:40", "2026-03-01T10:00"),
        (cronjob(), "2026-03-01T10:40", "2026-03-01T11:00"),
        (cronjob(), "2026-03-09T12:10", "2026-03-09T13:00"),
        (cronjob(startingDeadlineSeconds=1), "2026-03-09T12:10", "2026-03-09T13:00"),
        (cronjob("0 0 31 2 *"), "2026-03-09T12:10", None),
    ],
)
def test_controller_looks_again_after_the_next_time(held: Object, now: str, following: str | None) -> None:
    left = seconds_to_next(held, cron_schedule.parse(held["spec"]["schedule"], ""), at(now))
    assert left is None if following is None else left == pytest.approx(at(following) - at(now) + 0.1)


def test_start_is_too_late_after_the_deadline() -> None:
    held = cronjob(startingDeadlineSeconds=60)
    assert not is_too_late(held, 1000, 1060)
    assert is_too_late(held, 1000, 1060.5)
    assert not is_too_late(cronjob(), 1000, 1e9)


@pytest.mark.parametrize(
    ("zone", "stamp"),
    [
        (None, "2026-07-01T10:00:00Z"),
        ("Etc/UTC", "2026-07-01T10:00:00Z"),
        ("Europe/Berlin", "2026-07-01T12:00:00+02:00"),
        ("Asia/Kolkata", "2026-07-01T15:30:00+05:30"),
    ],
)
def test_job_shows_its_scheduled_time(zone: str | None, stamp: str) -> None:
    held = cronjob(**({"timeZone": zone} if zone else {}))
    due = parse_time("2026-07-01T10:00:00Z")
    made = new_job(held, due)
    assert made["metadata"]["name"] == job_name(held, due) == f"c-{due // 60}"
    assert made["metadata"]["labels"] == {"a": "b"}
    assert made["metadata"]["annotations"] == {"batch.kubernetes.io/cronjob-scheduled-timestamp": stamp}
    assert made["metadata"]["ownerReferences"][0] == {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "name": "c",
        "uid": "u",
        "controller": True,
        "blockOwnerDeletion": True,
    }
