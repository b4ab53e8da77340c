"""Decisions of the StatefulSet controller: pods to create and delete, status, and owners of claims."""

from __future__ import annotations

from typing import Any

import pytest

from kubist.cluster.control.workloads import statefulset
from kubist.cluster.control.workloads.pods import owner_reference
from kubist.cluster.control.workloads.statefulset_plan import (
    Plan,
    keeps_current,
    ordinal,
    plan,
    stateful_status,
)
from kubist.model.meta.object import Object

NOW = 2_000_000_000.0


def stateful(replicas: int = 3, **spec: Any) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "web", "namespace": "default", "uid": "set", "generation": 1},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            **spec,
        },
        "status": {},
    }


def pod(
    index: int, *, ready: bool = True, phase: str = "Running", gone: bool = False, revision: str = "new"
) -> Object:
    metadata: Object = {
        "name": f"web-{index}",
        "uid": f"pod-{index}",
        "labels": {"controller-revision-hash": revision},
    }
    if gone:
        metadata["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    conditions = [{"type": "Ready", "status": "True"}] if ready else []
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "status": {"phase": phase, "conditions": conditions},
    }


def planned(owner: Object, *pods: Object) -> tuple[list[int], list[int], list[int]]:
    """Ordinals to create, to delete, and to replace."""
    held = {ordinal(owner, found): found for found in pods}
    result: Plan = plan(owner, held, "new", NOW)
    doomed = [[ordinal(owner, found) for found in part] for part in (result.delete, result.update)]
    return result.create, doomed[0], doomed[1]


@pytest.mark.parametrize(
    ("pods", "wanted"),
    [
        ([], ([0], [], [])),
        ([pod(0, ready=False, phase="Pending")], ([], [], [])),
        ([pod(0)], ([1], [], [])),
        ([pod(0), pod(1, gone=True), pod(2)], ([], [], [])),
        ([pod(0), pod(1, phase="Failed", ready=False), pod(2)], ([], [1], [])),
        ([pod(0), pod(1, phase="Failed", gone=True)], ([], [], [])),
        ([pod(0), pod(1), pod(2)], ([], [], [])),
        ([pod(0), pod(1), pod(2), pod(3), pod(4)], ([], [4], [])),
        ([pod(0), pod(1), pod(2), pod(3), pod(4, gone=True)], ([], [], [])),
        ([pod(0), pod(1), pod(2), pod(3), pod(4, ready=False)], ([], [4], [])),
        ([pod(0), pod(1), pod(2), pod(3, ready=False), pod(4, ready=False)], ([], [], [])),
        ([pod(0), pod(1), pod(2), pod(3, ready=False), pod(4)], ([], [4], [])),
        ([pod(0, ready=False), pod(1), pod(2), pod(3)], ([], [], [])),
        ([pod(0), pod(1), pod(2, revision="old")], ([], [], [2])),
        ([pod(0, revision="old"), pod(1, revision="old"), pod(2)], ([], [], [1])),
        ([pod(0, revision="old"), pod(1, revision="old"), pod(2, ready=False)], ([], [], [])),
    ],
)
def test_ordered_set_takes_one_step_at_a_time(
    pods: list[Object], wanted: tuple[list[int], list[int], list[int]]
) -> None:
    assert planned(stateful(), *pods) == wanted


@pytest.mark.parametrize(
    ("pods", "wanted"),
    [
        ([], ([0, 1, 2], [], [])),
        ([pod(1, ready=False)], ([0, 2], [], [])),
        ([pod(0), pod(1, phase="Failed"), pod(2), pod(3), pod(4)], ([], [1, 4, 3], [])),
        ([pod(0), pod(1), pod(2), pod(3, gone=True), pod(4)], ([], [4], [])),
        ([pod(0, revision="old"), pod(1, revision="old"), pod(2, revision="old")], ([], [], [2])),
    ],
)
def test_parallel_set_takes_all_steps(
    pods: list[Object], wanted: tuple[list[int], list[int], list[int]]
) -> None:
    assert planned(stateful(podManagementPolicy="Parallel"), *pods) == wanted


def test_partition_keeps_lower_ordinals() -> None:
    owner = stateful(updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 2}})
    old = [pod(index, revision="old") for index in range(3)]
    assert planned(owner, *old) == ([], [], [2])
    assert planned(owner, *old[:2], pod(2)) == ([], [], [])
    assert keeps_current(owner, 1)
    assert not keeps_current(owner, 2)


def test_on_delete_replaces_nothing_and_creates_updated_pods() -> None:
    owner = stateful(updateStrategy={"type": "OnDelete"})
    assert planned(owner, *(pod(index, revision="old") for index in range(3))) == ([], [], [])
    assert not keeps_current(owner, 0)


@pytest.mark.parametrize(("bound", "count"), [(2, 2), ("50%", 2), (0, 1), ("100%", 5)])
def test_max_unavailable_replaces_several_pods(bound: int | str, count: int) -> None:
    rolling = {"partition": 0, "maxUnavailable": bound}
    owner = stateful(5, updateStrategy={"type": "RollingUpdate", "rollingUpdate": rolling})
    old = [pod(index, revision="old") for index in range(5)]
    assert planned(owner, *old)[2] == [4, 3, 2, 1, 0][:count]


def test_unavailable_pods_count_against_max_unavailable() -> None:
    rolling = {"partition": 0, "maxUnavailable": 2}
    owner = stateful(
        podManagementPolicy="Parallel", updateStrategy={"type": "RollingUpdate", "rollingUpdate": rolling}
    )
    assert planned(owner, pod(0, revision="old"), pod(1, revision="old"), pod(2, gone=True))[2] == [1]


def test_ordinals_may_start_above_zero() -> None:
    owner = stateful(2, ordinals={"start": 5})
    assert planned(owner) == ([5], [], [])
    assert planned(owner, pod(5), pod(6), pod(0)) == ([], [0], [])


@pytest.mark.parametrize(
    ("name", "index"),
    [("web-0", 0), ("web-12", 12), ("web-01", -1), ("web", -1), ("other-1", -1), ("web-x", -1)],
)
def test_ordinal_of_a_name(name: str, index: int) -> None:
    assert ordinal(stateful(), {"metadata": {"name": name}}) == index


def test_status_counts_pods_of_both_revisions() -> None:
    pods = [
        pod(0, revision="old"),
        pod(1, revision="old", ready=False),
        pod(2),
        pod(3, gone=True, revision="old"),
    ]
    status = stateful_status(stateful(), pods, "old", "new", 1, NOW)
    assert status == {
        "observedGeneration": 1,
        "replicas": 4,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "currentReplicas": 2,
        "updatedReplicas": 1,
        "currentRevision": "old",
        "updateRevision": "new",
        "collisionCount": 1,
        "conditions": None,
    }


def test_update_is_complete_when_all_pods_are_updated_and_ready() -> None:
    pods = [pod(index) for index in range(3)]
    status = stateful_status(stateful(), pods, "old", "new", 0, NOW)
    assert (status["currentRevision"], status["currentReplicas"]) == ("new", 3)
    on_delete = stateful(updateStrategy={"type": "OnDelete"})
    assert stateful_status(on_delete, pods, "old", "new", 0, NOW)["currentRevision"] == "old"


def claim(*owners: Object) -> Object:
    return {"metadata": {"name": "data-web-0", "ownerReferences": list(owners)}}


def policy(deleted: str, scaled: str) -> Object:
    return stateful(1, persistentVolumeClaimRetentionPolicy={"whenDeleted": deleted, "whenScaled": scaled})


@pytest.mark.parametrize(
    ("deleted", "scaled", "kept", "surplus"),
    [
        ("Retain", "Retain", [], []),
        ("Delete", "Retain", ["set"], ["set"]),
        ("Retain", "Delete", [], ["pod-1"]),
        ("Delete", "Delete", ["set"], ["pod-1"]),
    ],
)
def test_retention_policy_decides_the_owner_of_claims(
    deleted: str, scaled: str, kept: list[str], surplus: list[str]
) -> None:
    owner = policy(deleted, scaled)

    def owners(index: int, *held: Object) -> list[str]:
        found = statefulset.wanted_owners(claim(*held), owner, pod(index))
        assert found is not None
        return [reference["uid"] for reference in found]

    assert owners(0) == kept
    assert owners(1) == surplus
    assert owners(0, owner_reference(owner)) == kept
    assert owners(0, owner_reference(pod(0))) == kept


def test_claim_of_an_earlier_set_or_pod_is_left_alone() -> None:
    owner = policy("Delete", "Delete")
    earlier = owner_reference(pod(0)) | {"uid": "earlier"}
    assert statefulset.wanted_owners(claim(earlier), owner, pod(0)) is None
    assert statefulset.is_stale(claim(earlier), owner, "web-0")
    assert not statefulset.is_stale(claim(earlier), owner, "web-1")
    assert not statefulset.is_stale(claim(earlier), policy("Delete", "Retain"), "web-0")


def test_claim_of_another_controller_keeps_it() -> None:
    other = {"apiVersion": "v1", "kind": "Other", "name": "x", "uid": "x", "controller": True}
    owner = policy("Delete", "Delete")
    assert statefulset.has_other_controller(claim(other), owner, pod(0))
    assert statefulset.wanted_owners(claim(other, owner_reference(owner)), owner, pod(0)) == [other]
    assert not statefulset.has_other_controller(claim(other), policy("Retain", "Retain"), pod(0))


def test_claims_come_from_templates() -> None:
    template = {
        "metadata": {"name": "data", "labels": {"a": "b"}, "annotations": {"c": "d"}},
        "spec": {"x": 1},
    }
    found = statefulset.claims_of(stateful(volumeClaimTemplates=[template]), 2)
    labels = {"a": "b", "app": "web"}
    metadata = {"name": "data-web-2", "labels": labels, "annotations": {"c": "d"}}
    assert found == {"data": {"metadata": metadata, "spec": {"x": 1}}}
    new = {"spec": {"volumes": [{"name": "data", "emptyDir": {}}, {"name": "other"}]}}
    statefulset.add_volumes(new, found)
    assert new["spec"]["volumes"] == [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-2"}},
        {"name": "other"},
    ]
