"""CronJob controller on a running server whose clock the tests move."""

from __future__ import annotations

from typing import Any

import pytest

from kubist.model.meta.object import Object
from kubist.testing import Cluster
from tests.waiting import wait_for

pytestmark = pytest.mark.kubist(workloads=True)
MERGE = "application/merge-patch+json"
CRONJOBS = "/apis/batch/v1/namespaces/default/cronjobs"


def create(cluster: Cluster, schedule: str = "0 * * * *", runs: bool = False, **spec: Any) -> None:
    """Creates a CronJob at 09:30. Its Jobs run for ever unless `runs` is true; then they succeed at once."""
    cluster.clock.set("2030-03-01T09:30:00Z")
    pod = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}
    if not runs:
        pod["schedulerName"] = "none"
    body = {"schedule": schedule, "jobTemplate": {"spec": {"template": {"spec": pod}}}, **spec}
    made = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c"}, "spec": body}
    cluster.request("POST", CRONJOBS, made)


def jobs(cluster: Cluster) -> list[str]:
    """Scheduled times of all Jobs that are not being deleted."""
    name = "batch.kubernetes.io/cronjob-scheduled-timestamp"
    found = cluster.list("jobs")
    return sorted(
        job["metadata"]["annotations"][name][11:16]
        for job in found
        if "deletionTimestamp" not in job["metadata"]
    )


def events(cluster: Cluster) -> set[tuple[str, str]]:
    return {
        (event["reason"], event["message"])
        for event in cluster.list("events")
        if event["involvedObject"]["kind"] == "CronJob"
    }


def status(cluster: Cluster) -> Object:
    found: Object = cluster.get("cronjob/c")["status"]
    return found


def active(cluster: Cluster, count: int = 1) -> list[Object]:
    """References to active Jobs, as soon as there are so many."""
    wait_for(lambda: len(status(cluster).get("active", ())) == count)
    found: list[Object] = status(cluster)["active"]
    return found


def test_job_is_created_at_its_time_and_reported(cluster: Cluster) -> None:
    create(cluster, runs=True)
    cluster.clock.advance("30m1s")
    held = cluster.wait("cronjob/c", lambda held: held["status"].get("lastSuccessfulTime"))
    assert held["status"]["lastScheduleTime"] == "2030-03-01T10:00:00Z"
    (job,) = cluster.list("jobs")
    name = job["metadata"]["name"]
    assert name == "c-31643160"
    wait_for(lambda: "active" not in status(cluster))
    wanted = {
        ("SuccessfulCreate", f"Created job {name}"),
        ("SawCompletedJob", f"Saw completed job: {name}, condition: Complete"),
    }
    wait_for(lambda: wanted <= events(cluster))


def test_allow_runs_jobs_side_by_side(cluster: Cluster) -> None:
    create(cluster, concurrencyPolicy="Allow")
    cluster.clock.advance("31m")
    wait_for(lambda: jobs(cluster) == ["10:00"])
    cluster.clock.advance("1h")
    wait_for(lambda: jobs(cluster) == ["10:00", "11:00"])
    assert {reference["kind"] for reference in active(cluster, 2)} == {"Job"}


def test_forbid_waits_for_the_previous_job(cluster: Cluster) -> None:
    create(cluster, concurrencyPolicy="Forbid")
    cluster.clock.advance("31m")
    active(cluster)
    cluster.clock.advance("1h")
    message = "Not starting job because prior execution is running and concurrency policy is Forbid"
    wait_for(lambda: ("JobAlreadyActive", message) in events(cluster))
    assert jobs(cluster) == ["10:00"]
    assert status(cluster)["lastScheduleTime"] == "2030-03-01T10:00:00Z"


def test_replace_deletes_the_previous_job(cluster: Cluster) -> None:
    create(cluster, concurrencyPolicy="Replace")
    cluster.clock.advance("31m")
    (first,) = active(cluster)
    cluster.clock.advance("1h")
    wait_for(lambda: jobs(cluster) == ["11:00"])
    wait_for(lambda: active(cluster)[0]["name"] != first["name"])
    wait_for(lambda: ("SuccessfulDelete", f"Deleted job {first['name']}") in events(cluster))


def test_suspended_cron_job_starts_nothing_until_it_resumes(cluster: Cluster) -> None:
    create(cluster, suspend=True)
    cluster.clock.advance("3h")
    cluster.request("PATCH", f"{CRONJOBS}/c", {"metadata": {"labels": {"x": "y"}}}, MERGE)
    assert jobs(cluster) == []
    cluster.request("PATCH", f"{CRONJOBS}/c", {"spec": {"suspend": False}}, MERGE)
    wait_for(lambda: jobs(cluster) == ["12:00"])


def test_only_the_latest_of_many_missed_times_is_started(cluster: Cluster) -> None:
    create(cluster, schedule="* * * * *")
    cluster.clock.advance("5h")
    wait_for(lambda: jobs(cluster) == ["14:30"])
    message = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
    wait_for(lambda: ("TooManyMissedTimes", message) in events(cluster))


def test_time_before_the_starting_deadline_is_skipped(cluster: Cluster) -> None:
    create(cluster, startingDeadlineSeconds=60)
    cluster.clock.advance("45m")
    cluster.clock.set("2030-03-01T11:00:30Z")
    wait_for(lambda: "11:00" in jobs(cluster))
    assert jobs(cluster) == ["11:00"]


def test_history_limits_keep_the_latest_jobs(cluster: Cluster) -> None:
    create(cluster, runs=True, successfulJobsHistoryLimit=1)
    cluster.clock.advance("31m")
    wait_for(lambda: status(cluster).get("lastSuccessfulTime"))
    cluster.clock.advance("1h")
    wait_for(lambda: jobs(cluster) == ["11:00"] and not status(cluster).get("active"))


def test_changed_schedule_starts_at_its_next_time(cluster: Cluster) -> None:
    create(cluster, schedule="0 0 1 1 *")
    cluster.clock.advance("31m")
    cluster.request("PATCH", f"{CRONJOBS}/c", {"spec": {"schedule": "15 * * * *"}}, MERGE)
    cluster.clock.advance("15m")
    wait_for(lambda: jobs(cluster) == ["10:15"])


def test_time_zone_moves_the_schedule(cluster: Cluster) -> None:
    create(cluster, schedule="0 12 * * *", timeZone="Europe/Berlin")
    cluster.clock.set("2030-03-01T11:00:01Z")
    wait_for(lambda: jobs(cluster) == ["12:00"])


def test_missing_and_foreign_jobs_are_reported(cluster: Cluster) -> None:
    create(cluster)
    cluster.clock.advance("31m")
    (first,) = active(cluster)
    cluster.delete(f"job/{first['name']}", propagationPolicy="Background")
    wait_for(lambda: not status(cluster).get("active"))
    wait_for(lambda: ("MissingJob", f"Active job went missing: {first['name']}") in events(cluster))
    held = cluster.get("cronjob/c")
    owner = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "name": "c",
        "uid": held["metadata"]["uid"],
        "controller": True,
    }
    job = {
        "metadata": {"name": "manual", "ownerReferences": [owner]},
        "spec": held["spec"]["jobTemplate"]["spec"],
    }
    cluster.request("POST", CRONJOBS.replace("cronjobs", "jobs"), job)
    message = "Saw a job that the controller did not create or forgot: manual"
    wait_for(lambda: ("UnexpectedJob", message) in events(cluster))
