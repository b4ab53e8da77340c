"""Counting of a Job's finished pods: every pod counts once."""

from __future__ import annotations

from kubist.cluster.control.workloads.job_sync import BACKOFF, COMPLETE, Backoff, Outcome, survey
from kubist.cluster.control.workloads.job_tracking import (
    Tracking,
    copy_status,
    finish,
    set_suspended,
    settle,
    shown_status,
    track,
)
from kubist.model.meta.object import Object
from tests.control.workloads.batch_objects import NOW, indexed, job, pod

STAMP = "2027-01-15T08:00:00Z"


def tracked(held: Object, *pods: Object, outcome: Outcome | None = None) -> tuple[Object, Tracking]:
    """Status and result of one pass."""
    status = copy_status(held) | {"terminating": 0}
    return status, track(survey(held, list(pods), Backoff(), NOW), outcome, status, STAMP)


def uid(one: Object) -> str:
    return str(one["metadata"]["uid"])


def test_finished_pods_are_listed_before_they_lose_their_finalizer() -> None:
    done, failed, running = pod("Succeeded"), pod("Failed"), pod()
    status, tracking = tracked(job(5), done, failed, running)
    assert status["uncountedTerminatedPods"] == {"succeeded": [uid(done)], "failed": [uid(failed)]}
    assert "succeeded" not in status
    assert tracking.release == [done, failed]


def test_listed_pods_are_counted_after_they_lost_their_finalizer() -> None:
    held = job(
        5, status={"succeeded": 1, "uncountedTerminatedPods": {"succeeded": ["x", "y"], "failed": ["z"]}}
    )
    status = copy_status(held)
    settle(status, {"y"})
    assert status["uncountedTerminatedPods"] == {"succeeded": ["y"], "failed": []}
    assert (status["succeeded"], status["failed"]) == (2, 1)
    assert held["status"]["uncountedTerminatedPods"] == {"succeeded": ["x", "y"], "failed": ["z"]}


def test_pod_that_was_listed_before_a_restart_is_counted_once() -> None:
    listed = pod("Succeeded")
    held = job(5, status={"uncountedTerminatedPods": {"succeeded": [uid(listed), "gone"]}})
    status, tracking = tracked(held, listed)
    assert status["uncountedTerminatedPods"]["succeeded"] == [uid(listed)]
    assert status["succeeded"] == 1
    assert tracking.release == [listed]


def test_released_pod_is_ignored() -> None:
    status, tracking = tracked(job(5), pod("Succeeded", tracked=False))
    assert (status["uncountedTerminatedPods"], tracking.release) == ({"succeeded": [], "failed": []}, [])


def test_active_pods_of_a_failed_job_count_as_failed() -> None:
    running = pod()
    status, _ = tracked(job(5), running, outcome=BACKOFF)
    assert status["uncountedTerminatedPods"]["failed"] == [uid(running)]
    assert [(c["type"], c["reason"]) for c in status["conditions"]] == [
        ("FailureTarget", "BackoffLimitExceeded")
    ]


def test_active_pods_of_a_successful_job_do_not_count() -> None:
    status, tracking = tracked(job(5), pod(), outcome=COMPLETE)
    assert status["uncountedTerminatedPods"]["failed"] == []
    assert len(tracking.release) == 1


def test_ignored_failure_is_released_without_counting() -> None:
    rule = {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [42]}}
    failed = pod("Failed", exit_code=42)
    status, tracking = tracked(job(5, podFailurePolicy={"rules": [rule]}), failed)
    assert status["uncountedTerminatedPods"]["failed"] == []
    assert tracking.release == [failed]


def test_indexed_job_counts_indexes_at_once() -> None:
    held = indexed(5, status={"completedIndexes": "0", "succeeded": 1})
    status, tracking = tracked(held, *(pod("Succeeded", index=index) for index in (2, 1, 1, 9)))
    assert (status["completedIndexes"], status["succeeded"]) == ("0-2", 3)
    assert status["uncountedTerminatedPods"]["succeeded"] == []
    assert len(tracking.release) == 4


def test_failed_pod_of_an_index_keeps_its_finalizer_until_it_is_replaced() -> None:
    held = indexed(1, backoffLimitPerIndex=3)
    failed = pod("Failed", index=0, failures=0)
    status, tracking = tracked(held, failed)
    assert (tracking.release, status["failedIndexes"]) == ([], "")
    assert shown_status(status)["failedIndexes"] == ""
    _, tracking = tracked(held, failed, pod("Pending", index=0, failures=1))
    assert tracking.release == [failed]


def test_one_pass_counts_at_most_500_pods() -> None:
    _, tracking = tracked(job(2000), *(pod("Succeeded") for _ in range(700)))
    assert (len(tracking.release), tracking.is_partial) == (500, True)


def test_job_finishes_only_after_all_pods_are_counted_and_gone() -> None:
    status = copy_status(job(1)) | {"terminating": 1}
    assert not finish(BACKOFF, status, STAMP)
    status |= {"terminating": 0, "uncountedTerminatedPods": {"failed": ["x"]}}
    assert not finish(BACKOFF, status, STAMP)
    status["uncountedTerminatedPods"] = {}
    assert finish(BACKOFF, status, STAMP)
    assert status["conditions"] == [
        {
            "type": "Failed",
            "status": "True",
            "lastProbeTime": STAMP,
            "lastTransitionTime": STAMP,
            "reason": "BackoffLimitExceeded",
            "message": "Job has reached the specified backoff limit",
        }
    ]
    assert "completionTime" not in status


def test_complete_job_has_a_completion_time() -> None:
    status = copy_status(job(1)) | {"terminating": 0}
    assert finish(COMPLETE, status, STAMP)
    assert status["completionTime"] == STAMP
    assert status["conditions"][0]["type"] == "Complete"


def test_suspend_and_resume_reset_the_start_time() -> None:
    status = copy_status(job(1))
    assert set_suspended(status, job(1), STAMP) == ""
    assert status["conditions"] == []
    assert set_suspended(status, job(1, suspend=True), STAMP) == "Suspended"
    assert "startTime" not in status
    assert set_suspended(status, job(1, suspend=True), STAMP) == ""
    assert set_suspended(status, job(1), STAMP) == "Resumed"
    assert status["startTime"] == STAMP
    assert [(c["type"], c["status"], c["reason"]) for c in status["conditions"]] == [
        ("Suspended", "False", "JobResumed")
    ]


def test_written_status_leaves_out_zero_counters() -> None:
    status = {"active": 0, "succeeded": 0, "failed": 0, "ready": 0, "terminating": 0, "conditions": []}
    status["uncountedTerminatedPods"] = {"succeeded": [], "failed": []}
    assert shown_status(status) == {"ready": 0, "terminating": 0, "uncountedTerminatedPods": {}}
