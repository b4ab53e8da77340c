"""Decisions of the Job controller for given pods and times."""

from __future__ import annotations

from typing import Any

import pytest

from kubist.cluster.control.workloads.job_pods import INDEX, NO_INDEX, new_pod
from kubist.cluster.control.workloads.job_policies import Intervals, parse_indexes
from kubist.cluster.control.workloads.job_sync import (
    BACKOFF,
    DEADLINE,
    Backoff,
    Plan,
    Progress,
    finish_time,
    is_complete,
    plan,
    survey,
)
from kubist.model.meta.object import Object
from tests.control.workloads.batch_objects import NOW, indexed, job, pod

FRESH = Backoff()


def look(held: Object, *pods: Object, backoff: Backoff = FRESH, after: float = 0) -> Progress:
    return survey(held, list(pods), backoff, NOW + after)


def planned(held: Object, *pods: Object, after: float = 0, backoff: Backoff = FRESH) -> Plan:
    return plan(look(held, *pods, after=after, backoff=backoff), NOW + after)


def names(pods: list[Object]) -> set[str]:
    return {one["metadata"]["name"] for one in pods}


# Indexes


@pytest.mark.parametrize(
    ("text", "shown", "count"),
    [
        ("", "", 0),
        ("0", "0", 1),
        ("0,1", "0,1", 2),
        ("0-2", "0-2", 3),
        ("0,2-4,9", "0,2-4", 4),
        ("0,1,2,7-20", "0-2,7", 4),
        ("x,3", "3", 1),
    ],
)
def test_indexes_are_read_and_written(text: str, shown: str, count: int) -> None:
    found = parse_indexes(text, 8)
    assert (str(found), len(found)) == (shown, count)


def test_indexes_merge_with_their_neighbours() -> None:
    found = parse_indexes("1-3,7", 100).with_indexes([4, 9, 8, 0, 2])
    assert str(found) == "0-4,7-9"
    assert [index for index in range(12) if index in found] == [0, 1, 2, 3, 4, 7, 8, 9]
    assert list(found.gaps(12)) == [5, 6, 10, 11]


def test_overlap_counts_common_indexes() -> None:
    assert parse_indexes("0-4,7-9", 20).overlap(parse_indexes("3-7,9-12", 20)) == 4
    assert parse_indexes("0-4", 20).overlap(Intervals()) == 0


# Number of pods


@pytest.mark.parametrize(
    ("spec", "pods", "created"),
    [
        ({"completions": 5, "parallelism": 2}, [], 2),
        ({"completions": 5, "parallelism": 2}, ["Running"], 1),
        ({"completions": 5, "parallelism": 10}, ["Succeeded", "Running"], 3),
        ({"completions": 2, "parallelism": 2}, ["Succeeded", "Succeeded"], 0),
        ({"completions": None, "parallelism": 3}, [], 3),
        ({"completions": None, "parallelism": 3}, ["Succeeded", "Running"], 0),
        ({"completions": 1, "parallelism": 0}, [], 0),
        ({"completions": 2000, "parallelism": 2000}, [], 500),
    ],
)
def test_missing_pods_are_created(spec: dict[str, Any], pods: list[str], created: int) -> None:
    assert planned(job(**spec), *map(pod, pods)).create == [NO_INDEX] * created


def test_lower_parallelism_deletes_the_pods_that_did_the_least() -> None:
    busy = pod(ready=True, nodeName="n")
    idle, unscheduled = pod(nodeName="n"), pod("Pending")
    assert names(planned(job(5), busy, idle, unscheduled).delete) == names([idle, unscheduled])


def test_suspended_job_deletes_all_active_pods() -> None:
    one, other, done = pod(), pod("Pending"), pod("Succeeded")
    assert names(planned(job(5, suspend=True), one, other, done).delete) == names([one, other])


def test_free_indexes_are_filled_in_order() -> None:
    held = indexed(6, parallelism=4, status={"completedIndexes": "0,1", "succeeded": 2})
    assert planned(held, pod(index=3)).create == [2, 4, 5]


def test_duplicate_and_invalid_indexes_are_deleted() -> None:
    kept = pod(index=0, ready=True, nodeName="n")
    duplicate, beyond, without = pod(index=0), pod(index=2), pod()
    assert names(planned(indexed(2), kept, duplicate, beyond, without).delete) == names(
        [duplicate, beyond, without]
    )


def test_elastic_indexed_job_forgets_indexes_beyond_its_completions() -> None:
    held = indexed(2, status={"completedIndexes": "0-3", "succeeded": 4})
    found = look(held)
    assert (found.succeeded, str(found.succeeded_indexes)) == (2, "0,1")
    assert is_complete(found, 0)


@pytest.mark.parametrize(("policy", "created"), [("TerminatingOrFailed", 1), ("Failed", 0)])
def test_replacement_of_a_terminating_pod_follows_the_policy(policy: str, created: int) -> None:
    held = job(1, podReplacementPolicy=policy, backoffLimit=6)
    assert len(planned(held, pod(deleted=True), after=1000).create) == created


def test_terminating_index_is_not_replaced_before_it_failed() -> None:
    held = indexed(2, podReplacementPolicy="Failed")
    assert planned(held, pod(index=0, deleted=True)).create == [1]


# Back-off


@pytest.mark.parametrize(
    ("failures", "seconds"),
    [(0, 0), (1, 10), (2, 20), (3, 40), (6, 320), (7, 600), (20, 600), (1000, 600)],
)
def test_backoff_doubles_up_to_ten_minutes(failures: int, seconds: float) -> None:
    assert Backoff(failures, NOW).remaining(NOW) == seconds
    assert Backoff(failures, NOW).remaining(NOW + seconds) == 0


def test_failed_pod_is_replaced_after_the_backoff() -> None:
    held, failed = job(1), pod("Failed", finished=5)
    assert planned(held, failed, after=7) == Plan(retry_after=8)
    assert planned(held, failed, after=15).create == [NO_INDEX]


def test_success_resets_the_backoff() -> None:
    before = Backoff(3, NOW)
    failed, later = pod("Failed", finished=10), pod("Failed", finished=30)
    assert before.after([], [failed, later]) == Backoff(5, NOW + 30)
    assert before.after([pod("Succeeded", finished=20)], [failed, later]) == Backoff(1, NOW + 30)
    assert before.after([pod("Succeeded", finished=40)], [failed, later]) == Backoff()
    assert before.after([], []) == before


def test_finish_time_of_a_pod_without_ended_containers() -> None:
    assert finish_time(pod()) == NOW
    assert finish_time(pod(deleted=True)) == NOW
    unready = pod()
    unready["status"]["conditions"] = [
        {"type": "Ready", "status": "False", "lastTransitionTime": "2030-01-01T00:00:00Z"}
    ]
    assert finish_time(unready) == 1893456000


# Failure of a Job


def test_job_fails_above_its_backoff_limit() -> None:
    held = job(1, backoffLimit=1)
    assert look(held, pod("Failed")).outcome is None
    assert look(held, pod("Failed"), pod("Failed")).outcome == BACKOFF
    assert look(job(1, backoffLimit=1, status={"failed": 1}), pod("Failed")).outcome == BACKOFF


def test_deleted_pod_counts_as_failed() -> None:
    assert look(job(1, backoffLimit=0), pod(deleted=True)).outcome == BACKOFF
    assert look(job(1, backoffLimit=0, podReplacementPolicy="Failed"), pod(deleted=True)).outcome is None


def test_uncounted_and_released_pods_are_not_counted_twice() -> None:
    listed = pod("Failed")
    uncounted = {"failed": [listed["metadata"]["uid"], "gone"]}
    held = job(1, status={"failed": 1, "uncountedTerminatedPods": uncounted})
    assert look(held, listed, pod("Failed", tracked=False)).failed == 3


@pytest.mark.parametrize(
    ("limit", "restarts", "fails"), [(0, 0, False), (0, 1, True), (3, 2, False), (3, 3, True)]
)
def test_restarts_of_containers_count_with_restart_policy_on_failure(
    limit: int, restarts: int, fails: bool
) -> None:
    held, running = job(1, backoffLimit=limit), pod()
    running["status"]["containerStatuses"] = [{"name": "c", "restartCount": restarts, "state": {}}]
    assert look(held, running).outcome is None
    held["spec"]["template"]["spec"]["restartPolicy"] = "OnFailure"
    assert look(held, running).outcome == (BACKOFF if fails else None)


def test_job_fails_at_its_deadline() -> None:
    held = job(1, activeDeadlineSeconds=30)
    assert look(held, pod(), after=29.9).outcome is None
    assert look(held, pod(), after=30).outcome == DEADLINE
    assert look(job(1, activeDeadlineSeconds=30, suspend=True), after=99).outcome is None


def test_outcome_of_an_earlier_pass_is_kept() -> None:
    condition = {"type": "FailureTarget", "status": "True", "reason": "R", "message": "m"}
    assert look(job(1, status={"conditions": [condition]})).outcome == (False, "R", "m")
    condition = {"type": "SuccessCriteriaMet", "status": "True", "reason": "R", "message": "m"}
    assert look(job(1, status={"conditions": [condition]})).outcome == (True, "R", "m")


# Back-off limit per index


def test_index_is_retried_until_its_limit() -> None:
    held = indexed(2, backoffLimitPerIndex=1, backoffLimit=2**31 - 1)
    first = pod("Failed", index=0, failures=0)
    assert planned(held, first, after=5) == Plan(create=[1])
    assert planned(held, first, pod(index=1), after=5) == Plan(retry_after=5)
    assert planned(held, first, pod(index=1), after=10).create == [0]
    found = look(held, pod("Failed", index=0, failures=1), pod(index=1))
    assert (str(found.failed_indexes), found.outcome) == ("0", None)


def test_replacement_continues_the_failures_of_its_index() -> None:
    held = indexed(2, backoffLimitPerIndex=5)
    annotations = new_pod(held, 0, pod("Failed", index=0, failures=2))["metadata"]["annotations"]
    assert annotations == {
        "batch.kubernetes.io/job-completion-index": "0",
        "batch.kubernetes.io/job-index-failure-count": "3",
    }
    held["spec"]["podFailurePolicy"] = {"rules": [{"action": "Ignore", "onExitCodes": IN_42}]}
    replaced = pod("Failed", index=0, failures=2, exit_code=42)
    annotations = new_pod(held, 0, replaced)["metadata"]["annotations"]
    assert annotations["batch.kubernetes.io/job-index-failure-count"] == "2"
    assert annotations["batch.kubernetes.io/job-index-ignored-failure-count"] == "1"


def test_job_with_failed_indexes_fails_after_the_others_finished() -> None:
    held = indexed(2, backoffLimitPerIndex=0)
    found = look(held, pod("Failed", index=0, failures=0), pod("Succeeded", index=1))
    assert found.outcome == (False, "FailedIndexes", "Job has failed indexes")
    assert (str(found.failed_indexes), str(found.succeeded_indexes)) == ("0", "1")


def test_job_fails_above_max_failed_indexes() -> None:
    held = indexed(9, backoffLimitPerIndex=0, maxFailedIndexes=1)
    failed = [pod("Failed", index=index, failures=0) for index in (2, 5)]
    assert look(held, failed[0]).outcome is None
    assert look(held, *failed).outcome == (
        False,
        "MaxFailedIndexesExceeded",
        "Job has exceeded the specified maximal number of failed indexes",
    )


# podFailurePolicy

IN_42 = {"operator": "In", "values": [42]}


def policy(action: str, **rule: Any) -> Object:
    return {"rules": [{"action": action, **rule}]}


def test_fail_job_names_container_and_rule() -> None:
    held = job(1, podFailurePolicy=policy("FailJob", onExitCodes=IN_42))
    failed = pod("Failed", exit_code=42)
    name = failed["metadata"]["name"]
    assert look(held, failed).outcome == (
        False,
        "PodFailurePolicy",
        f"Container c for pod default/{name} failed with exit code 42 matching FailJob rule at index 0",
    )
    assert look(held, pod("Failed", exit_code=1)).outcome is None


def test_fail_job_by_a_pod_condition() -> None:
    pattern = [{"type": "DisruptionTarget", "status": "True"}]
    held = job(1, podFailurePolicy=policy("FailJob", onPodConditions=pattern))
    failed = pod("Failed", conditions=(("DisruptionTarget", "True"),))
    name = failed["metadata"]["name"]
    assert look(held, failed).outcome == (
        False,
        "PodFailurePolicy",
        f"Pod default/{name} has condition DisruptionTarget matching FailJob rule at index 0",
    )


@pytest.mark.parametrize(
    ("rule", "code", "failed"),
    [
        ({"action": "Ignore", "onExitCodes": IN_42}, 42, 0),
        ({"action": "Ignore", "onExitCodes": IN_42}, 1, 1),
        ({"action": "Count", "onExitCodes": IN_42}, 42, 1),
        ({"action": "Ignore", "onExitCodes": {"operator": "NotIn", "values": [42]}}, 1, 0),
        ({"action": "Ignore", "onExitCodes": {"operator": "NotIn", "values": [42]}}, 42, 1),
        ({"action": "Ignore", "onExitCodes": {**IN_42, "containerName": "c"}}, 42, 0),
        ({"action": "Ignore", "onExitCodes": {**IN_42, "containerName": "other"}}, 42, 1),
        ({"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}, 1, 1),
    ],
)
def test_policy_decides_whether_a_failure_counts(rule: Object, code: int, failed: int) -> None:
    held = job(1, podFailurePolicy={"rules": [rule]})
    assert look(held, pod("Failed", exit_code=code)).failed == failed


def test_fail_index_ends_the_index_at_once() -> None:
    held = indexed(2, backoffLimitPerIndex=5, podFailurePolicy=policy("FailIndex", onExitCodes=IN_42))
    found = look(held, pod("Failed", index=1, failures=0, exit_code=42))
    assert str(found.failed_indexes) == "1"


# successPolicy


@pytest.mark.parametrize(
    ("rule", "succeeded", "met"),
    [
        ({"succeededIndexes": "0-1"}, [0], False),
        ({"succeededIndexes": "0-1"}, [0, 1], True),
        ({"succeededIndexes": "0-3", "succeededCount": 2}, [1, 5], False),
        ({"succeededIndexes": "0-3", "succeededCount": 2}, [1, 3], True),
        ({"succeededCount": 2}, [4], False),
        ({"succeededCount": 2}, [4, 5], True),
    ],
)
def test_success_policy_ends_a_job_early(rule: Object, succeeded: list[int], met: bool) -> None:
    held = indexed(7, successPolicy={"rules": [{"succeededIndexes": "6"}, rule]})
    found = look(held, *(pod("Succeeded", index=index) for index in succeeded))
    assert found.outcome == ((True, "SuccessPolicy", "Matched rules at index 1") if met else None)


# New pods


def test_pod_of_an_indexed_job_knows_its_index() -> None:
    held = indexed(3)
    held["spec"]["template"]["spec"] |= {
        "initContainers": [{"name": "i"}],
        "containers": [{"name": "c"}, {"name": "d", "env": [{"name": "JOB_COMPLETION_INDEX", "value": "x"}]}],
    }
    made = new_pod(held, 2, None)
    metadata, spec = made["metadata"], made["spec"]
    assert metadata["generateName"] == "j-2-"
    assert metadata["labels"] == {"a": "b", INDEX: "2"}
    assert metadata["annotations"] == {INDEX: "2"}
    assert metadata["finalizers"] == ["batch.kubernetes.io/job-tracking"]
    assert spec["hostname"] == "j-2"
    variable = {
        "name": "JOB_COMPLETION_INDEX",
        "valueFrom": {
            "fieldRef": {"fieldPath": "metadata.labels['batch.kubernetes.io/job-completion-index']"}
        },
    }
    assert [c.get("env") for c in (*spec["initContainers"], *spec["containers"])] == [
        [variable],
        [variable],
        [{"name": "JOB_COMPLETION_INDEX", "value": "x"}],
    ]
    assert "env" not in held["spec"]["template"]["spec"]["containers"][0]


def test_generated_name_keeps_the_index_of_a_long_job_name() -> None:
    held = indexed(200)
    held["metadata"]["name"] = "x" * 60
    assert new_pod(held, 123, None)["metadata"]["generateName"] == "x" * 53 + "-123-"
