"""CronJob: schedules, time zones, and the job template."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubist.api.kinds.batch.schedule import ScheduleError, check_schedule
from kubist.model.meta.object import Object


@pytest.fixture
def cron_jobs(kind_of: Any) -> Any:
    return kind_of("batch/v1", "CronJob")


def cron_job(job: Object | None = None, **spec: Any) -> Object:
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    template = {"spec": {"template": {"spec": pod}, **(job or {})}}
    return {"metadata": {"name": "x"}, "spec": {"schedule": "0 * * * *", "jobTemplate": template, **spec}}


READABLE = [
    "* * * * *",
    "*/5 0-23/2 1,15 jan-DEC mon",
    "? ? ? ? ?",
    "@hourly",
    "@every 1h30m",
    "@every 1.5h",
    "  0  0  *  *  0 ",
    "5/15 * * * *",
    "0 0 31 2 *",
]
UNREADABLE = [
    "* * * *",
    "* * * * * *",
    "60 * * * *",
    "* * 0 * *",
    "* * * * 7",
    "5-1 * * * *",
    "*/0 * * * *",
    "1-2-3 * * * *",
    "1/2/3 * * * *",
    "-1 * * * *",
    "x * * * *",
    "@fortnightly",
    "@every now",
]


@pytest.mark.parametrize("schedule", READABLE)
def test_valid_schedules_are_accepted(cron_jobs: Any, schedule: str) -> None:
    assert cron_jobs.create_errors(cron_job(schedule=schedule)) == []


@pytest.mark.parametrize("schedule", UNREADABLE)
def test_invalid_schedules_are_rejected(cron_jobs: Any, schedule: str) -> None:
    assert cron_jobs.create_errors(cron_job(schedule=schedule)) == [("spec.schedule", "Invalid")]


@given(st.text(alphabet="0123456789*/-,?@ TZ=UCjanevryhm."))
def test_arbitrary_schedule_text_never_raises_other_errors(schedule: str) -> None:
    with contextlib.suppress(ScheduleError):
        check_schedule(schedule)


def test_schedule_with_time_zone_is_rejected(cron_jobs: Any) -> None:
    assert cron_jobs.create_errors(cron_job(schedule="TZ=UTC 0 * * * *")) == [("spec.schedule", "Invalid")]
    old = cron_jobs.stored(cron_job())
    old["spec"]["schedule"] = "TZ=UTC 0 * * * *"
    assert cron_jobs.change_errors(old, lambda obj: obj["spec"].update(suspend=True)) == []


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Etc/GMT+5"])
def test_known_time_zones_are_accepted(cron_jobs: Any, zone: str) -> None:
    assert cron_jobs.create_errors(cron_job(timeZone=zone)) == []


@pytest.mark.parametrize("zone", ["", "Local", "Mars/Olympus", "../UTC", "/UTC"])
def test_unknown_time_zones_are_rejected(cron_jobs: Any, zone: str) -> None:
    assert cron_jobs.create_errors(cron_job(timeZone=zone)) == [("spec.timeZone", "Invalid")]


def test_job_template_gets_pod_defaults_only(cron_jobs: Any) -> None:
    spec = cron_jobs.stored(cron_job())["spec"]["jobTemplate"]["spec"]
    assert spec.keys() == {"template"}
    assert spec["template"]["spec"]["dnsPolicy"] == "ClusterFirst"


def test_selector_in_job_template_is_rejected(cron_jobs: Any) -> None:
    causes = cron_jobs.create_errors(
        cron_job({"selector": {"matchLabels": {"a": "b"}}, "manualSelector": True})
    )
    assert causes == [
        ("spec.jobTemplate.spec.selector", "Invalid"),
        ("spec.jobTemplate.spec.manualSelector", "NotSupported"),
    ]


def test_name_length_leaves_room_for_job_suffix(cron_jobs: Any) -> None:
    long = cron_job()
    long["metadata"]["name"] = "x" * 53
    assert cron_jobs.create_errors(long) == [("metadata.name", "Invalid")]
