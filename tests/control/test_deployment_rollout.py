"""Decisions of the Deployment controller: sizes of ReplicaSets, revisions and conditions."""

from __future__ import annotations

from typing import Any

import pytest

from kubist.cluster.control.workloads import deployment_rollout
from kubist.cluster.control.workloads.deployment_rollout import (
    DESIRED,
    HISTORY,
    MAX,
    REVISION,
    deadline_in,
    is_complete,
    made_progress,
    mark_paused,
    rollout_status,
    set_progress,
)
from kubist.model.meta.object import Object
from kubist.model.meta.times import parse_time

NOW = "2030-01-01T00:00:00Z"
LATER = "2030-01-01T00:10:01Z"


def deployment(
    replicas: int, surge: int | str = 0, unavailable: int | str = 0, image: str = "new", **spec: Any
) -> Object:
    strategy = {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable},
    }
    return {
        "metadata": {"name": "web", "generation": 1, "annotations": {}},
        "spec": {"replicas": replicas, "strategy": strategy, "template": template(image), **spec},
        "status": {},
    }


def template(image: str) -> Object:
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": image}]}}


def held(
    name: str,
    replicas: int,
    available: int | None = None,
    *,
    image: str = "",
    age: int = 0,
    **annotations: Any,
) -> Object:
    count = replicas if available is None else available
    return {
        "metadata": {
            "name": name,
            "uid": name,
            "generation": 1,
            "creationTimestamp": f"2029-01-01T00:00:{50 - age:02}Z",
            "annotations": {
                deployment_rollout.PREFIX + key.replace("_", "-"): str(v) for key, v in annotations.items()
            },
        },
        "spec": {"replicas": replicas, "template": template(image or name)},
        "status": {
            "replicas": replicas,
            "availableReplicas": count,
            "readyReplicas": count,
            "observedGeneration": 1,
            "terminatingReplicas": 0,
        },
    }


def sizes(steps: list[deployment_rollout.Scaling]) -> dict[str, int]:
    return {step.replica_set["metadata"]["name"]: step.replicas for step in steps}


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "wanted"),
    [
        (10, "25%", "25%", (3, 2)),
        (1, "25%", "25%", (1, 0)),
        (4, 0, 0, (0, 1)),
        (2, 0, 5, (0, 2)),
        (0, "25%", "25%", (0, 0)),
        (3, "100%", 0, (3, 0)),
    ],
)
def test_surge_is_rounded_up_and_unavailable_down(
    replicas: int, surge: Any, unavailable: Any, wanted: tuple[int, int]
) -> None:
    assert deployment_rollout.bounds(deployment(replicas, surge, unavailable)) == wanted


def test_recreate_has_no_surge() -> None:
    obj = deployment(3, 1, 1)
    obj["spec"]["strategy"] = {"type": "Recreate"}
    assert deployment_rollout.bounds(obj) == (0, 0)
    assert deployment_rollout.size_of_new(obj, [held("old", 3)], 0) == 3


@pytest.mark.parametrize(
    ("wanted", "surge", "old", "current", "size"),
    [
        (10, 3, 10, 0, 3),
        (10, 3, 13, 0, 0),
        (10, 0, 8, 0, 2),
        (10, 3, 0, 4, 10),
        (5, 1, 0, 8, 5),
        (10, 3, 5, 3, 8),
    ],
)
def test_new_replica_set_grows_as_far_as_surge_allows(
    wanted: int, surge: int, old: int, current: int, size: int
) -> None:
    sets = [held("old", old), held("new", current)]
    assert deployment_rollout.size_of_new(deployment(wanted, surge), sets, current) == size


@pytest.mark.parametrize(
    ("old", "old_available", "new", "new_available", "wanted"),
    [
        (10, 10, 3, 0, {"old": 8}),
        (8, 8, 5, 0, {}),
        (8, 8, 5, 5, {"old": 3}),
        (10, 7, 0, 0, {"old": 8}),
        (3, 3, 10, 10, {"old": 0}),
        (10, 5, 3, 3, {"old": 5}),
    ],
    ids=[
        "first step",
        "new pods are not ready",
        "new pods are ready",
        "unhealthy first",
        "last step",
        "unhealthy",
    ],
)
def test_old_replica_set_shrinks_as_far_as_availability_allows(
    old: int, old_available: int, new: int, new_available: int, wanted: dict[str, int]
) -> None:
    obj = deployment(10, 3, 2)
    steps = deployment_rollout.scale_down(
        obj, held("new", new, new_available), [held("old", old, old_available)]
    )
    assert sizes(steps) == wanted


def test_oldest_replica_set_shrinks_first() -> None:
    old = [held("b", 4, age=1), held("a", 4, age=2)]
    assert sizes(deployment_rollout.scale_down(deployment(8, 2, 2), held("new", 0), old)) == {"a": 2}


def test_new_replica_set_is_the_oldest_with_the_template() -> None:
    sets = [held("young", 1, image="new", age=1), held("old", 1, image="new", age=9), held("x", 1, age=20)]
    sets[1]["spec"]["template"]["metadata"]["labels"][deployment_rollout.HASH] = "abc"
    assert deployment_rollout.newest(deployment(1), sets) is sets[1]
    assert deployment_rollout.newest(deployment(1, image="other"), sets) is None


def test_only_active_replica_set_gets_the_whole_size() -> None:
    steps = deployment_rollout.resize(deployment(5), held("new", 0), [held("old", 3)])
    assert sizes(steps) == {"old": 5}
    assert sizes(deployment_rollout.resize(deployment(5), held("new", 0), [held("old", 0)])) == {"new": 5}
    assert sizes(
        deployment_rollout.resize(deployment(5), None, [held("a", 0, age=2), held("b", 0, age=1)])
    ) == {"b": 5}
    assert deployment_rollout.resize(deployment(5), held("new", 5), []) == []
    assert deployment_rollout.resize(deployment(5), None, []) == []


def test_saturated_deployment_empties_old_replica_sets() -> None:
    steps = deployment_rollout.resize(deployment(5), held("new", 5, desired_replicas=5), [held("old", 2)])
    assert sizes(steps) == {"old": 0}


@pytest.mark.parametrize(
    ("wanted", "surge", "before", "new", "old", "result"),
    [
        (30, 3, 13, 5, 8, {"new": 13, "old": 20}),
        (5, 1, 12, 4, 8, {"new": 2, "old": 4}),
        (0, 0, 10, 4, 6, {"new": 0, "old": 0}),
        (10, 2, 10, 5, 5, {"new": 6, "old": 6}),
        (11, 0, 10, 5, 5, {"new": 6, "old": 5}),
    ],
    ids=["grow", "shrink", "to zero", "equal", "the newer of equal ones grows"],
)
def test_proportional_scaling(
    wanted: int, surge: int, before: int, new: int, old: int, result: dict[str, int]
) -> None:
    sets = held("new", new, age=1, max_replicas=before), held("old", old, age=2, max_replicas=before)
    steps = deployment_rollout.resize(deployment(wanted, surge, 1), sets[0], [sets[1]])
    assert sizes(steps) == result
    assert all(step.always for step in steps)


def test_scaling_is_found_by_the_recorded_size_of_active_sets() -> None:
    assert deployment_rollout.is_scaled(deployment(5), [held("new", 3, desired_replicas=3)])
    assert not deployment_rollout.is_scaled(deployment(5), [held("new", 5, desired_replicas=5)])
    assert not deployment_rollout.is_scaled(deployment(5), [held("new", 0, desired_replicas=3)])
    assert not deployment_rollout.is_scaled(deployment(5), [held("new", 3)])
    assert not deployment_rollout.is_scaled(deployment(5), [held("new", 3, desired_replicas="x")])


def test_reused_template_gets_a_new_revision_and_keeps_its_history() -> None:
    obj = deployment(1)
    obj["metadata"]["annotations"] = {"note": "a", REVISION: "2", DESIRED: "1"}
    new = held("new", 1, revision=1)
    annotations = deployment_rollout.updated_annotations(obj, new, [held("old", 1, revision=2)])
    assert annotations == {"note": "a", REVISION: "3", HISTORY: "1"}
    new["metadata"]["annotations"] = annotations
    annotations = deployment_rollout.updated_annotations(obj, new, [held("old", 1, revision=4)])
    assert annotations[HISTORY] == "1,3"
    assert deployment_rollout.updated_annotations(obj, new, [held("old", 1, revision=2)])[REVISION] == "3"


def test_revision_history_is_bounded() -> None:
    new = held("new", 1, revision=999999)
    new["metadata"]["annotations"][HISTORY] = ",".join(["123456789"] * 199)
    annotations = deployment_rollout.updated_annotations(
        deployment(1), new, [held("old", 1, revision=1000000)]
    )
    assert len(annotations[HISTORY]) <= deployment_rollout.HISTORY_LENGTH
    assert annotations[HISTORY].endswith(",999999")


def test_idle_replica_sets_above_the_limit_are_removed_lowest_revision_first() -> None:
    old = [held(f"r{number}", 0, revision=number) for number in (3, 1, 2)]
    obj = deployment(1, revisionHistoryLimit=1)
    assert [found["metadata"]["name"] for found in deployment_rollout.removable(obj, old)] == ["r1", "r2"]
    old[1]["status"]["replicas"] = 1
    assert [found["metadata"]["name"] for found in deployment_rollout.removable(obj, old)] == ["r2"]
    assert deployment_rollout.removable(deployment(1, revisionHistoryLimit=10), old) == []


def test_recreate_waits_for_terminating_pods() -> None:
    old = held("old", 0)
    assert not deployment_rollout.has_old_pods([old])
    old["status"]["terminatingReplicas"] = 1
    assert deployment_rollout.has_old_pods([old])


def test_limits_record_the_size_with_surge() -> None:
    assert deployment_rollout.limits(deployment(10, "25%")) == {DESIRED: "10", MAX: "13"}


def test_long_names_are_shortened() -> None:
    obj = deployment(1)
    obj["metadata"]["name"] = "x" * 253
    assert deployment_rollout.set_name(obj, "abc") == "x" * 249 + "-abc"


def status_of(obj: Object, new: Object | None, *old: Object, now: str = NOW) -> Object:
    sets = [*old, new] if new is not None else [*old]
    conditions = [dict(condition) for condition in obj["status"].get("conditions") or ()]
    status = rollout_status(obj, sets, new, conditions, now)
    set_progress(obj, sets, new, status, parse_time(now), now)
    return status


def conditions_of(status: Object) -> dict[str, tuple[str, str, str]]:
    return {c["type"]: (c["status"], c["reason"], c["message"]) for c in status["conditions"]}


def test_status_counts_all_replica_sets() -> None:
    obj = deployment(5, 1, 1)
    old, new = held("old", 3), held("new", 3, 1)
    old["status"]["terminatingReplicas"] = 2
    status = status_of(obj, new, old)
    counts = {key: value for key, value in status.items() if key != "conditions"}
    assert counts == {
        "observedGeneration": 1,
        "replicas": 6,
        "updatedReplicas": 3,
        "readyReplicas": 4,
        "availableReplicas": 4,
        "unavailableReplicas": 2,
        "terminatingReplicas": 2,
        "collisionCount": None,
    }
    available = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    assert conditions_of(status)["Available"] == available


def test_terminating_replicas_are_unknown_if_a_set_does_not_count_them() -> None:
    new = held("new", 1)
    del new["status"]["terminatingReplicas"]
    assert status_of(deployment(1), new)["terminatingReplicas"] is None


def test_progress_deadline_is_missed_and_made_up_for() -> None:
    obj = deployment(2, progressDeadlineSeconds=600)
    obj["status"] = status = status_of(obj, held("new", 2, 0))
    assert conditions_of(status)["Progressing"] == (
        "True",
        "ReplicaSetUpdated",
        'ReplicaSet "new" is progressing.',
    )
    assert deadline_in(obj, status["conditions"], parse_time(NOW)) == 600
    obj["status"] = status = status_of(obj, held("new", 2, 0), now=LATER)
    assert conditions_of(status)["Progressing"] == (
        "False",
        "ProgressDeadlineExceeded",
        'ReplicaSet "new" has timed out progressing.',
    )
    assert conditions_of(status)["Available"][1] == "MinimumReplicasUnavailable"
    assert deadline_in(obj, status["conditions"], parse_time(LATER)) is None
    obj["status"] = status = status_of(obj, held("new", 2, 1), now=LATER)
    assert conditions_of(status)["Progressing"][:2] == ("True", "ReplicaSetUpdated")
    status = status_of(obj, held("new", 2, 2), now=LATER)
    assert conditions_of(status)["Progressing"] == (
        "True",
        "NewReplicaSetAvailable",
        'ReplicaSet "new" has successfully progressed.',
    )


def test_deployment_without_deadline_has_no_progressing_condition() -> None:
    obj = deployment(2, progressDeadlineSeconds=2**31 - 1)
    assert "Progressing" not in conditions_of(status_of(obj, held("new", 2, 0)))


def test_complete_deployment_stays_complete_when_a_pod_becomes_unready() -> None:
    obj = deployment(2, progressDeadlineSeconds=600)
    obj["status"] = status_of(obj, held("new", 2))
    status = status_of(obj, held("new", 2, 1), now=LATER)
    assert conditions_of(status)["Progressing"][1] == "NewReplicaSetAvailable"


def test_replica_failure_is_copied_and_removed() -> None:
    obj = deployment(2, progressDeadlineSeconds=600)
    new = held("new", 2, 0)
    failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "no quota"}
    new["status"]["conditions"] = [{**failure, "lastTransitionTime": NOW}]
    obj["status"] = status_of(obj, new)
    assert conditions_of(obj["status"])["ReplicaFailure"] == ("True", "FailedCreate", "no quota")
    assert "ReplicaFailure" not in conditions_of(status_of(obj, held("new", 2, 0)))


def test_pause_and_resume_set_progressing_to_unknown() -> None:
    obj = deployment(2, progressDeadlineSeconds=600, paused=True)
    conditions: list[Object] = []
    mark_paused(obj, conditions, NOW)
    assert [c["reason"] for c in conditions] == ["DeploymentPaused"]
    mark_paused(obj, conditions, LATER)
    assert conditions[0]["lastUpdateTime"] == NOW
    del obj["spec"]["paused"]
    mark_paused(obj, conditions, LATER)
    assert [(c["status"], c["reason"]) for c in conditions] == [("Unknown", "DeploymentResumed")]
    conditions[0]["reason"] = "ProgressDeadlineExceeded"
    obj["spec"]["paused"] = True
    mark_paused(obj, conditions, LATER)
    assert conditions[0]["reason"] == "ProgressDeadlineExceeded"


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        ({}, {}, False),
        ({}, {"updatedReplicas": 1, "replicas": 1}, True),
        ({"replicas": 3}, {"replicas": 2}, True),
        ({"replicas": 2}, {"replicas": 3}, False),
        ({"readyReplicas": 1}, {"readyReplicas": 2}, True),
        ({"availableReplicas": 2}, {"availableReplicas": 1}, False),
    ],
)
def test_progress_is_more_new_pods_or_fewer_old_ones(before: Object, after: Object, wanted: bool) -> None:
    assert made_progress(before, after) is wanted


def test_rollout_is_complete_when_all_counts_are_the_wanted_one() -> None:
    status = {"replicas": 2, "updatedReplicas": 2, "availableReplicas": 2, "observedGeneration": 1}
    assert is_complete(deployment(2), status)
    assert not is_complete(deployment(3), status)
    assert not is_complete(deployment(2), {**status, "observedGeneration": 0})
