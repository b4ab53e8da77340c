"""Guidance on workloads that no controller works on."""

from __future__ import annotations

from typing import Any

import pytest

from kubist.cluster.control.guidance import is_seen
from kubist.cluster.control.manager import chosen
from kubist.model.meta.object import Object
from kubist.testing import Cluster
from tests.waiting import wait_for

MERGE = "application/merge-patch+json"
GUIDED = pytest.mark.kubist(controllers=("*", "guidance"))
TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "c", "image": "nginx"}], "restartPolicy": "Always"},
}


def workload(kind: str, name: str = "web") -> Object:
    version = {"Job": "batch/v1", "ReplicationController": "v1"}.get(kind, "apps/v1")
    spec: Object = {"selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE}
    if kind == "Job":
        spec = {"template": {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}}
    if kind == "ReplicationController":
        spec["selector"] = {"app": "web"}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def told(cluster: Cluster) -> dict[tuple[str, str], tuple[str, int]]:
    """Message and count of every Event of the guidance, by kind and name of the object."""
    found = [event for event in cluster.list("events") if event["reason"] == "NoController"]
    return {
        (e["involvedObject"]["kind"], e["involvedObject"]["name"]): (e["message"], e["count"]) for e in found
    }


@GUIDED
def test_workloads_without_controller_get_one_event(cluster: Cluster) -> None:
    kinds = ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController", "Job"]
    cluster.load(*(workload(kind) for kind in kinds), workload("Deployment", "handled"))
    owner = cluster.get("deploy/web")
    reference = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": "web",
        "uid": owner["metadata"]["uid"],
    }
    owned = workload("ReplicaSet", "owned")
    owned["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
    cluster.load(owned)
    path = "/apis/apps/v1/namespaces/default/deployments/handled/status"
    cluster.request("PATCH", path, {"status": {"observedGeneration": 1}}, MERGE)
    cluster.clock.advance("10s")
    wait_for(lambda: len(told(cluster)) == len(kinds))
    assert told(cluster) == {
        (kind, "web"): (
            f"no {kind} controller is running; start kubist serve --workloads or a kube-controller-manager",
            1,
        )
        for kind in kinds
    }
    cluster.request("PATCH", path.replace("handled/status", "web"), {"spec": {"replicas": 2}}, MERGE)
    cluster.clock.advance("10s")
    cluster.load(workload("Deployment", "second"))
    cluster.clock.advance("10s")
    wait_for(lambda: ("Deployment", "second") in told(cluster))
    assert told(cluster)["Deployment", "web"][1] == 1


@GUIDED
def test_pods_without_scheduler_get_one_event(cluster: Cluster) -> None:
    spec = {"containers": [{"name": "c", "image": "nginx"}]}
    for name, more in (
        ("waits", {}),
        ("bound", {"nodeName": "a"}),
        ("gated", {"schedulingGates": [{"name": "example.com/later"}]}),
        ("other", {"schedulerName": "mine"}),
    ):
        cluster.load(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {**spec, **more}}
        )
    cluster.clock.advance("10s")

    def events() -> list[tuple[str, str]]:
        found = [event for event in cluster.list("events") if event["reason"] == "NoScheduler"]
        return [(event["involvedObject"]["name"], event["message"]) for event in found]

    wait_for(lambda: events() != [])
    assert events() == [
        ("waits", "no scheduler is running; start kubist serve --workloads or a kube-scheduler")
    ]


def test_guidance_runs_only_if_it_is_named() -> None:
    assert "guidance" not in [loop.name for loop in chosen(("*",))]
    assert "guidance" in [loop.name for loop in chosen(("*", "guidance"))]
    assert "guidance" not in [loop.name for loop in chosen(("*", "guidance", "-guidance"))]


@pytest.mark.kubist(workloads=True, controllers=("*", "guidance"))
def test_simulated_workloads_need_no_guidance(cluster: Cluster) -> None:
    inner = cluster.inner
    assert inner._loops is not None
    assert "guidance" not in [loop.name for loop in inner._loops.loops]


@pytest.mark.parametrize(
    ("workload", "seen"),
    [
        ({"kind": "Deployment", "metadata": {}, "spec": {}, "status": {}}, False),
        ({"kind": "Deployment", "metadata": {}, "spec": {}, "status": {"observedGeneration": 1}}, True),
        ({"kind": "Deployment", "metadata": {"deletionTimestamp": "x"}, "spec": {}}, True),
        ({"kind": "Job", "metadata": {}, "spec": {}, "status": {}}, False),
        ({"kind": "Job", "metadata": {}, "spec": {}, "status": {"active": 1}}, True),
        ({"kind": "Job", "metadata": {}, "spec": {"managedBy": "x"}}, True),
        ({"kind": "Pod", "metadata": {}, "spec": {}, "status": {"phase": "Pending"}}, False),
        ({"kind": "Pod", "metadata": {}, "spec": {}, "status": {"conditions": [{}]}}, True),
    ],
)
def test_controllers_leave_traces_in_the_status(workload: Object, seen: bool) -> None:
    assert is_seen(workload) is seen
