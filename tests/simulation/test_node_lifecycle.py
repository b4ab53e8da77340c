"""Nodes that fail: lost heartbeats, taints, and eviction of their pods."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import pytest

from kubist.cluster.control.node_lifecycle import tainted
from kubist.cluster.control.taint_eviction import tolerated_for
from kubist.model.meta.conditions import find
from kubist.model.meta.object import Object
from kubist.testing import Cluster
from tests.waiting import wait_for

NOW = "2026-01-01T00:00:00Z"
MERGE = "application/merge-patch+json"
STATE = "kubist.io/node-state"
NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"


def node(unschedulable: bool = False, taints: list[Object] | None = None, **conditions: str) -> Object:
    listed = [{"type": kind, "status": status} for kind, status in conditions.items()]
    spec: Object = {"unschedulable": True} if unschedulable else {}
    if taints:
        spec["taints"] = taints
    return {"metadata": {"name": "n"}, "spec": spec, "status": {"conditions": listed}}


def effects(held: Object | None) -> set[tuple[str, str]]:
    assert held is not None
    return {
        (taint["key"].removeprefix("node.kubernetes.io/"), taint["effect"])
        for taint in held["spec"]["taints"]
    }


@pytest.mark.parametrize(
    ("held", "wanted"),
    [
        (node(Ready="False"), {("not-ready", "NoSchedule"), ("not-ready", "NoExecute")}),
        (node(Ready="Unknown"), {("unreachable", "NoSchedule"), ("unreachable", "NoExecute")}),
        (node(Ready="True", MemoryPressure="True"), {("memory-pressure", "NoSchedule")}),
        (node(Ready="True", unschedulable=True), {("unschedulable", "NoSchedule")}),
        (node(), {("not-ready", "NoSchedule")}),
    ],
)
def test_taints_follow_the_conditions(held: Object, wanted: set[tuple[str, str]]) -> None:
    assert effects(tainted(held, NOW, evict=True)) == wanted


def test_taints_of_users_are_kept_and_outdated_ones_removed() -> None:
    mine = {"key": "mine", "effect": "NoExecute"}
    old = {"key": UNREACHABLE, "effect": "NoExecute", "timeAdded": NOW}
    assert tainted(node(Ready="True", taints=[mine]), NOW, evict=True) is None
    after = tainted(node(Ready="True", taints=[mine, old]), NOW, evict=True)
    assert after is not None
    assert after["spec"]["taints"] == [mine]


def test_no_eviction_while_no_node_is_ready() -> None:
    old = [{"key": NOT_READY, "effect": "NoExecute"}]
    assert effects(tainted(node(Ready="False", taints=old), NOW, evict=False)) == {
        ("not-ready", "NoSchedule")
    }


def toleration(seconds: int | None = None, key: str = NOT_READY) -> Object:
    held: Object = {"key": key, "operator": "Exists", "effect": "NoExecute"}
    return held if seconds is None else {**held, "tolerationSeconds": seconds}


@pytest.mark.parametrize(
    ("tolerations", "seconds"),
    [
        ([], 0.0),
        ([toleration(key="other")], 0.0),
        ([toleration()], None),
        ([toleration(300)], 300.0),
        ([toleration(0)], 0.0),
        ([toleration(-5)], 0.0),
        ([toleration(300), {"operator": "Exists"}], 300.0),
        ([{"operator": "Exists"}, toleration(300)], None),
    ],
)
def test_time_for_which_a_taint_is_tolerated(tolerations: list[Object], seconds: float | None) -> None:
    taint = {"key": NOT_READY, "effect": "NoExecute"}
    assert tolerated_for({"spec": {"tolerations": tolerations}}, [taint]) == seconds


def test_shortest_toleration_of_several_taints_counts() -> None:
    taints = [{"key": key, "effect": "NoExecute"} for key in (NOT_READY, UNREACHABLE)]
    pod = {"spec": {"tolerations": [toleration(20), toleration(10, UNREACHABLE)]}}
    assert tolerated_for(pod, taints) == 10.0
    assert tolerated_for(pod, []) is None


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kubist.cluster.simulation.nodes.RENEW_SECONDS", 0.2)
        patch.setattr("kubist.cluster.control.node_lifecycle.GRACE", 3.0)
        patch.setattr("kubist.cluster.control.orphaned_pods.QUARANTINE", 0.2)
        with Cluster(workloads=True, workload_nodes=3) as shared:
            for number in range(3):
                shared.wait(f"node/kubist-node-{number}", "Ready")
            yield shared


def get(cluster: Cluster, name: str) -> Object:
    return cluster.request("GET", f"/api/v1/nodes/{name}")  # type: ignore[no-any-return]


def set_state(cluster: Cluster, name: str, state: str | None) -> None:
    body = {"metadata": {"annotations": {STATE: state}}}
    cluster.request("PATCH", f"/api/v1/nodes/{name}", body, content_type=MERGE)


def run(cluster: Cluster, name: str, on: str, tolerations: list[Object], grace: int = 0) -> Object:
    """Runs a pod on a node."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "containers": [{"name": "c", "image": "i"}],
            "nodeName": on,
            "tolerations": tolerations,
            "terminationGracePeriodSeconds": grace,
        },
    }
    cluster.load(pod)
    return cluster.wait(f"pod/{name}", "Ready")


def names(cluster: Cluster) -> set[str]:
    return {
        pod["metadata"]["name"] for pod in cluster.list("pods") if "deletionTimestamp" not in pod["metadata"]
    }


def events(cluster: Cluster, name: str, reason: str) -> list[str]:
    items = cluster.request("GET", "/api/v1/namespaces/default/events")["items"]
    return [e["message"] for e in items if e["involvedObject"]["name"] == name and e["reason"] == reason]


def taints(cluster: Cluster, name: str) -> set[tuple[str, str]]:
    return {(taint["key"], taint["effect"]) for taint in get(cluster, name)["spec"].get("taints") or ()}


def test_new_node_loses_the_taint_of_admission(cluster: Cluster) -> None:
    wait_for(lambda: not taints(cluster, "kubist-node-0"))
    assert wait_for(lambda: events(cluster, "kubist-node-0", "RegisteredNode")) == [
        "Node kubist-node-0 event: Registered Node kubist-node-0 in Controller"
    ]


def test_pods_of_a_node_that_is_not_ready_are_evicted(cluster: Cluster) -> None:
    run(cluster, "short", "kubist-node-1", [toleration(0)])
    run(cluster, "long", "kubist-node-1", [toleration(3600)])
    set_state(cluster, "kubist-node-1", "NotReady")
    wait_for(lambda: (NOT_READY, "NoExecute") in taints(cluster, "kubist-node-1"))
    wait_for(lambda: "short" not in names(cluster))
    assert wait_for(lambda: events(cluster, "short", "TaintManagerEviction")) == [
        "Marking for deletion Pod default/short"
    ]
    assert "long" in names(cluster)
    set_state(cluster, "kubist-node-1", None)
    wait_for(lambda: not taints(cluster, "kubist-node-1"))
    assert wait_for(lambda: events(cluster, "long", "TaintManagerEviction")) == [
        "Cancelling deletion of Pod default/long"
    ]


def test_taint_of_a_user_evicts_after_the_tolerated_time(cluster: Cluster) -> None:
    run(cluster, "brief", "kubist-node-0", [{**toleration(1), "key": "mine"}])
    run(cluster, "none", "kubist-node-0", [])
    run(cluster, "ever", "kubist-node-0", [{**toleration(), "key": "mine"}])
    body: dict[str, Any] = {"spec": {"taints": [{"key": "mine", "effect": "NoExecute"}]}}
    cluster.request("PATCH", "/api/v1/nodes/kubist-node-0", body, content_type=MERGE)
    wait_for(lambda: names(cluster).isdisjoint(("brief", "none")))
    assert "ever" in names(cluster)
    cluster.request("PATCH", "/api/v1/nodes/kubist-node-0", {"spec": {"taints": None}}, content_type=MERGE)


def test_node_without_heartbeats_is_unknown_and_recovers(cluster: Cluster) -> None:
    run(cluster, "lost", "kubist-node-2", [toleration(3600, UNREACHABLE), toleration(3600)])
    set_state(cluster, "kubist-node-2", "Unreachable")

    def condition() -> Object:
        return find(get(cluster, "kubist-node-2")["status"]["conditions"], "Ready") or {}

    wait_for(lambda: condition()["status"] == "Unknown")
    assert condition()["message"] == "Kubelet stopped posting node status."
    wait_for(lambda: (UNREACHABLE, "NoExecute") in taints(cluster, "kubist-node-2"))

    def pod_ready() -> Object:
        return find(cluster.get("pod/lost")["status"]["conditions"], "Ready") or {}

    wait_for(lambda: pod_ready()["status"] == "False")
    assert wait_for(lambda: events(cluster, "lost", "NodeNotReady")) == ["Node is not ready"]
    assert "Node kubist-node-2 status is now: NodeNotReady" in events(
        cluster, "kubist-node-2", "NodeNotReady"
    )
    set_state(cluster, "kubist-node-2", None)
    wait_for(lambda: condition()["status"] == "True")
    wait_for(lambda: not taints(cluster, "kubist-node-2"))


def test_pods_of_a_deleted_node_are_deleted(cluster: Cluster) -> None:
    labels = {"kubist.io/simulated": "true"}
    cluster.load({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "brief", "labels": labels}})
    cluster.wait("node/brief", "Ready")
    run(cluster, "orphan", "brief", [{"operator": "Exists"}])
    cluster.delete("node/brief")
    wait_for(lambda: "orphan" not in names(cluster))


def test_pods_of_a_node_that_is_out_of_service_do_not_wait_for_its_kubelet(cluster: Cluster) -> None:
    tolerations = [toleration(3600), toleration(3600, UNREACHABLE)]
    run(cluster, "stuck", "kubist-node-1", tolerations, grace=600)
    set_state(cluster, "kubist-node-1", "NotReady")
    wait_for(lambda: (NOT_READY, "NoExecute") in taints(cluster, "kubist-node-1"))
    cluster.delete("pod/stuck")
    assert cluster.get("pod/stuck")["metadata"]["deletionTimestamp"]
    taint = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
    added = [{"op": "add", "path": "/spec/taints/-", "value": taint}]
    cluster.request("PATCH", "/api/v1/nodes/kubist-node-1", added, "application/json-patch+json")
    cluster.wait("pod/stuck", "delete")
    body = {"spec": {"taints": None}}
    cluster.request("PATCH", "/api/v1/nodes/kubist-node-1", body, content_type=MERGE)
    set_state(cluster, "kubist-node-1", None)
    wait_for(lambda: not taints(cluster, "kubist-node-1"))


def test_pods_of_a_lost_node_are_evicted_when_their_time_is_over() -> None:
    """The clock is moved, and nodes that renew their Leases are not lost by that."""
    with Cluster(workloads=True, workload_nodes=2) as moved:
        for number in range(2):
            moved.wait(f"node/kubist-node-{number}", "Ready")
        for number in range(2):
            run(moved, f"p{number}", f"kubist-node-{number}", [])
        node = moved.node("kubist-node-1")
        node.unreachable()
        moved.clock.advance("60s")
        wait_for(lambda: (UNREACHABLE, "NoExecute") in taints(moved, "kubist-node-1"))
        assert names(moved) == {"p0", "p1"}
        moved.clock.advance("310s")
        wait_for(lambda: names(moved) == {"p0"})
        before = (moved.clock.now + datetime.timedelta(minutes=59)).isoformat()
        moved.clock.advance("1h")
        beat = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/kubist-node-0"
        wait_for(lambda: moved.request("GET", beat)["spec"]["renewTime"] > before)
        assert not taints(moved, "kubist-node-0")
        assert not events(moved, "kubist-node-0", "NodeNotReady")
        node.ready()
        wait_for(lambda: not taints(moved, "kubist-node-1"))
        wait_for(lambda: "p1" not in {pod["metadata"]["name"] for pod in moved.list("pods")})
