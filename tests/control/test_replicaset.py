"""Pods that a ReplicaSet deletes first."""

from __future__ import annotations

import pytest

from kubist.cluster.control.workloads.replicaset import DELETION_COST, deletion_cost, victims
from kubist.model.meta.object import Object
from kubist.model.meta.times import format_time

NOW = 2_000_000_000.0


def pod(
    name: str,
    *,
    node: str = "n",
    phase: str = "Running",
    ready: float | None = 1000.0,
    age: float = 1000.0,
    restarts: int = 0,
    cost: str | None = None,
) -> Object:
    """A pod that has been ready for `ready` seconds, or is not ready."""
    conditions = []
    if ready is not None:
        since = format_time(int(NOW - ready))
        conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": since}]
    return {
        "metadata": {
            "name": name,
            "uid": name,
            "creationTimestamp": format_time(int(NOW - age)),
            "annotations": {DELETION_COST: cost} if cost is not None else {},
        },
        "spec": {"nodeName": node},
        "status": {
            "phase": phase,
            "conditions": conditions,
            "containerStatuses": [{"restartCount": restarts}],
        },
    }


def chosen(pods: list[Object], count: int, related: list[Object] | None = None) -> list[str]:
    return [found["metadata"]["name"] for found in victims(pods, related or [], count, NOW)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"node": "", "phase": "Pending", "ready": None}, {"phase": "Pending", "ready": None}),
        ({"phase": "Pending", "ready": None}, {"ready": None}),
        ({"ready": None, "cost": "10"}, {"cost": "-10"}),
        ({"cost": "-10"}, {}),
        ({"ready": 10}, {"ready": 1000}),
        ({"restarts": 3}, {"restarts": 1, "age": 10}),
        ({"ready": None, "age": 10}, {"ready": None, "age": 1000}),
    ],
    ids=["no node", "pending", "not ready", "cheap", "recently ready", "restarted", "young"],
)
def test_one_pod_is_deleted_before_the_other(one: Object, other: Object) -> None:
    pods = [pod("keep", **other), pod("z", **one)]
    assert chosen(pods, 1) == chosen(pods[::-1], 1) == ["z"]


def test_pod_on_a_crowded_node_is_deleted_first() -> None:
    pods = [pod("a", node="empty"), pod("z", node="crowded")]
    related = [*pods, pod("other", node="crowded")]
    assert chosen(pods, 1, related) == ["z"]


def test_ages_of_the_same_magnitude_are_equal() -> None:
    """The UID decides, so that scaling down does not always delete the youngest pod."""
    assert chosen([pod("b", ready=1100), pod("a", ready=1200)], 1) == ["a"]
    assert chosen([pod("a", ready=1100), pod("b", ready=1200)], 1) == ["a"]


def test_all_pods_are_chosen_without_ranking() -> None:
    assert chosen([pod("a"), pod("b")], 2) == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("10", 10),
        ("-5", -5),
        ("0", 0),
        ("+5", 0),
        ("007", 0),
        ("x", 0),
        ("2147483648", 0),
        ("2147483647", 2147483647),
    ],
)
def test_malformed_deletion_cost_counts_as_zero(text: str, cost: int) -> None:
    assert deletion_cost(pod("a", cost=text)) == cost
