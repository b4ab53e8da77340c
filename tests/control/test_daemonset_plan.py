"""Decisions of the DaemonSet controller: nodes that get a pod, pods that are deleted, and status."""

from __future__ import annotations

from typing import Any

import pytest

from kubist.cluster.control.workloads import daemonset_plan
from kubist.cluster.control.workloads.daemonset_plan import Fit
from kubist.model.meta.object import Object

NOW = 2_000_000_000.0
RUNS, STAYS, LEAVES = Fit(True, True), Fit(False, True), Fit(False, False)


def daemon(surge: int | str = 0, unavailable: int | str = 1, **spec: Any) -> Object:
    rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
    return {
        "metadata": {"name": "d", "namespace": "default", "uid": "d", "generation": 2},
        "spec": {
            "template": {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": []}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
            **spec,
        },
        "status": {},
    }


def pod(
    name: str,
    node: str,
    *,
    ready: bool = True,
    phase: str = "Running",
    gone: bool = False,
    revision: str = "new",
    age: int = 0,
    bound: bool = True,
) -> Object:
    template = daemonset_plan.new_pod({"spec": {"containers": []}}, node, revision, "")
    metadata: Object = {
        "name": name,
        "namespace": "default",
        "labels": template["metadata"]["labels"],
        "creationTimestamp": f"2030-01-01T00:00:{50 - age:02}Z",
    }
    if gone:
        metadata["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    if bound:
        template["spec"]["nodeName"] = node
    conditions = [{"type": "Ready", "status": "True"}] if ready else []
    return {
        "metadata": metadata,
        "spec": template["spec"],
        "status": {"phase": phase, "conditions": conditions},
    }


def names(pods: list[Object]) -> list[str]:
    return sorted(found["metadata"]["name"] for found in pods)


def planned(
    owner: Object, nodes: dict[str, Fit], *pods: Object, backoff: bool = False
) -> daemonset_plan.Plan:
    return daemonset_plan.plan(
        owner, nodes, daemonset_plan.by_node(list(pods)), "new", lambda _node: not backoff, NOW
    )


def updated(owner: Object, nodes: dict[str, Fit], *pods: Object) -> tuple[list[str], list[str]]:
    result = daemonset_plan.plan_update(owner, nodes, daemonset_plan.by_node(list(pods)), "new", NOW)
    return result.create, names(result.delete)


def test_every_suitable_node_gets_one_pod() -> None:
    nodes = {"a": RUNS, "b": RUNS, "c": STAYS, "d": LEAVES}
    result = planned(daemon(), nodes, pod("pa", "a"), pod("pc", "c"), pod("pd", "d"))
    assert result.create == ["b"]
    assert names(result.delete) == ["pd"]


def test_unbound_pod_counts_for_the_node_of_its_affinity() -> None:
    assert planned(daemon(), {"a": RUNS}, pod("pa", "a", bound=False)).create == []


def test_unbound_pod_of_a_deleted_node_is_deleted() -> None:
    result = planned(daemon(), {}, pod("waits", "gone", bound=False), pod("runs", "gone"))
    assert names(result.delete) == ["waits"]


def test_surplus_pods_are_deleted_and_the_oldest_stays() -> None:
    result = planned(daemon(), {"a": RUNS}, pod("young", "a"), pod("old", "a", age=9))
    assert names(result.delete) == ["young"]


def test_terminating_pod_is_waited_for_unless_it_has_finished() -> None:
    assert planned(daemon(), {"a": RUNS}, pod("p", "a", gone=True)).create == []
    assert planned(daemon(), {"a": RUNS}, pod("p", "a", gone=True, phase="Failed")).create == ["a"]
    assert planned(daemon(surge=1), {"a": RUNS}, pod("p", "a", gone=True)).create == ["a"]


@pytest.mark.parametrize(
    ("phase", "reason"), [("Failed", "FailedDaemonPod"), ("Succeeded", "SucceededDaemonPod")]
)
def test_finished_pod_is_deleted_with_an_event(phase: str, reason: str) -> None:
    result = planned(daemon(), {"a": RUNS}, pod("p", "a", phase=phase, ready=False))
    assert names(result.delete) == ["p"]
    ((_, told, text),) = result.events
    assert told == reason
    assert "default/p on node a" in text


def test_failed_pod_stays_during_its_delay() -> None:
    result = planned(daemon(), {"a": RUNS}, pod("p", "a", phase="Failed"), backoff=True)
    assert (result.create, result.delete, result.events) == ([], [], [])


NODES = {"a": RUNS, "b": RUNS, "c": RUNS, "d": RUNS}


def old_pods(**changes: Any) -> list[Object]:
    return [pod(f"p{node}", node, revision="old", **changes) for node in NODES]


@pytest.mark.parametrize(("unavailable", "count"), [(1, 1), (2, 2), ("50%", 2), ("100%", 4), (0, 1)])
def test_max_unavailable_bounds_deletions(unavailable: int | str, count: int) -> None:
    assert updated(daemon(0, unavailable), NODES, *old_pods()) == ([], ["pa", "pb", "pc", "pd"][:count])


def test_unavailable_old_pods_are_always_replaced() -> None:
    pods = [*old_pods()[:2], pod("pc", "c", revision="old", ready=False), pod("pd", "d")]
    assert updated(daemon(), NODES, *pods) == ([], ["pc"])


def test_update_waits_for_new_pods() -> None:
    pods = [pod("pa", "a", ready=False), *old_pods()[1:]]
    assert updated(daemon(), NODES, *pods) == ([], [])
    assert updated(daemon(), NODES, *old_pods()[1:]) == ([], [])


@pytest.mark.parametrize(("surge", "count"), [(1, 1), (3, 3), ("50%", 2)])
def test_max_surge_creates_before_it_deletes(surge: int | str, count: int) -> None:
    owner = daemon(surge, 0)
    assert updated(owner, NODES, *old_pods()) == (["a", "b", "c", "d"][:count], [])


def test_surge_deletes_the_old_pod_when_the_new_one_is_available() -> None:
    owner = daemon(1, 0)
    assert updated(owner, NODES, *old_pods(), pod("new", "a")) == (["b"], ["pa"])
    assert updated(owner, NODES, *old_pods(), pod("new", "a", ready=False)) == ([], [])
    result = planned(owner, {"a": RUNS}, pod("old", "a", revision="old", age=9), pod("new", "a"))
    assert names(result.delete) == ["old"]


def test_surge_replaces_unavailable_pods_beyond_its_bound() -> None:
    assert updated(daemon(1, 0), NODES, *old_pods(ready=False)) == (["a", "b", "c", "d"], [])


def test_minimum_of_ready_seconds_delays_the_update() -> None:
    owner = daemon(minReadySeconds=10)
    pods = old_pods()
    for found in pods:
        found["status"]["conditions"][0]["lastTransitionTime"] = "2033-05-18T03:33:15Z"
    assert updated(owner, NODES, *pods)[1] == ["pa", "pb", "pc", "pd"]
    assert (
        daemonset_plan.daemon_status(owner, NODES, daemonset_plan.by_node(pods), "new", NOW)[
            "numberAvailable"
        ]
        is None
    )


def node(name: str, *taints: tuple[str, str], **labels: str) -> Object:
    found = [{"key": key, "effect": effect} for key, effect in taints]
    return {"metadata": {"name": name, "labels": labels}, "spec": {"taints": found}}


def fit(spec: Object, found: Object) -> Fit:
    owner = daemon()
    owner["spec"]["template"]["spec"] |= spec
    return daemonset_plan.fits(owner)(found)


def test_nodes_are_chosen_by_selector_affinity_and_taints() -> None:
    assert fit({}, node("a")) == RUNS
    assert fit({"nodeSelector": {"disk": "ssd"}}, node("a")) == LEAVES
    assert fit({"nodeSelector": {"disk": "ssd"}}, node("a", disk="ssd")) == RUNS
    assert fit({"nodeName": "b"}, node("a")) == LEAVES
    assert fit({}, node("a", ("custom", "NoSchedule"))) == STAYS
    assert fit({}, node("a", ("custom", "NoExecute"))) == LEAVES
    assert fit({}, node("a", ("custom", "PreferNoSchedule"))) == RUNS
    assert fit({}, node("a", ("node.kubernetes.io/not-ready", "NoExecute"))) == RUNS
    assert fit({}, node("a", ("node.kubernetes.io/unschedulable", "NoSchedule"))) == RUNS
    network = node("a", ("node.kubernetes.io/network-unavailable", "NoSchedule"))
    assert fit({}, network) == STAYS
    assert fit({"hostNetwork": True}, network) == RUNS


@pytest.mark.parametrize(
    ("expression", "matches"),
    [
        ({"key": "zone", "operator": "In", "values": ["x", "y"]}, True),
        ({"key": "zone", "operator": "NotIn", "values": ["x"]}, False),
        ({"key": "zone", "operator": "Exists"}, True),
        ({"key": "zone", "operator": "DoesNotExist"}, False),
        ({"key": "size", "operator": "Gt", "values": ["3"]}, True),
        ({"key": "size", "operator": "Lt", "values": ["3"]}, False),
        ({"key": "size", "operator": "Gt", "values": ["many"]}, False),
    ],
)
def test_required_node_affinity(expression: Object, matches: bool) -> None:
    terms = [{"matchExpressions": [expression]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    found = fit({"affinity": {"nodeAffinity": required}}, node("a", zone="x", size="5"))
    assert found == (RUNS if matches else LEAVES)


def test_pod_names_its_node_and_tolerates_node_conditions() -> None:
    template = daemonset_plan.new_pod({"spec": {"containers": [], "tolerations": []}}, "a", "hash", "3")
    assert template["metadata"]["labels"] == {
        "controller-revision-hash": "hash",
        "pod-template-generation": "3",
    }
    required = template["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    field = {"key": "metadata.name", "operator": "In", "values": ["a"]}
    assert required == {"nodeSelectorTerms": [{"matchFields": [field]}]}
    assert "nodeName" not in template["spec"]
    again = daemonset_plan.tolerations(template["spec"])
    assert again == template["spec"]["tolerations"]
    assert {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"} in again


def test_status_counts_the_oldest_pod_of_every_node() -> None:
    nodes = {"a": RUNS, "b": RUNS, "c": STAYS, "d": RUNS}
    pods = [
        pod("pa", "a", revision="old", age=9),
        pod("pa2", "a"),
        pod("pb", "b", ready=False),
        pod("pc", "c"),
    ]
    status = daemonset_plan.daemon_status(daemon(), nodes, daemonset_plan.by_node(pods), "new", NOW)
    assert {key: value for key, value in status.items() if value is not None} == {
        "currentNumberScheduled": 2,
        "numberMisscheduled": 1,
        "desiredNumberScheduled": 3,
        "numberReady": 1,
        "observedGeneration": 2,
        "updatedNumberScheduled": 1,
        "numberAvailable": 1,
        "numberUnavailable": 2,
    }
