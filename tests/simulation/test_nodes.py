"""Simulated nodes: what a kubelet reports, templates, and nodes of users."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from kubist.api.config import Config
from kubist.cluster.simulation import node_objects
from kubist.cluster.simulation.node_objects import expand, new_node, reported, states_of, template_of
from kubist.model.meta.conditions import find
from kubist.model.meta.object import Object
from kubist.testing import Cluster
from tests.waiting import wait_for

NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"
MERGE = "application/merge-patch+json"


def template(**settings: Any) -> node_objects.NodeTemplate:
    return template_of(Config(**settings))


def node(number: int = 0, **settings: Any) -> Object:
    return new_node(f"kubist-node-{number}", number, template(**settings), NOW)


def ready(node: Object) -> tuple[str, str]:
    condition = find(node["status"].get("conditions"), "Ready") or {}
    return condition.get("status", ""), condition.get("reason", "")


@pytest.mark.parametrize(
    ("pattern", "number", "value"),
    [("zone-{i%3}", 4, "zone-1"), ("{i}", 12, "12"), ("rack", 3, "rack"), ("{i%2}-{i}", 5, "1-5")],
)
def test_label_template(pattern: str, number: int, value: str) -> None:
    assert expand(pattern, number) == value


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"workload_node_labels": {"zone": "{j}"}}, "unknown placeholder"),
        ({"workload_node_labels": {"zone": "a b"}}, "label zone=a b"),
        ({"workload_node_capacity": {"cpu": "many"}}, '"many" is not an amount of cpu'),
        ({"workload_node_capacity": {"cpu": "-1"}}, '"-1" is not an amount of cpu'),
        ({"workload_nodes": -1}, "from 0 to 4096"),
        ({"workload_nodes": 5000}, "fewer pods"),
    ],
)
def test_malformed_template_is_rejected(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        template(**settings)


def test_small_nodes_may_be_many() -> None:
    small = template(workload_nodes=30000, workload_node_capacity={"pods": "110"})
    assert len({small.pod_network_of(number) for number in range(30000)}) == 30000


def test_pod_networks_are_distinct_and_hold_all_pods() -> None:
    made = [node(number) for number in range(300)]
    networks = [node_objects.pod_network(one) for one in made]
    assert str(networks[0]) == "10.244.0.0/21"
    assert all(network.num_addresses > 1000 for network in networks)
    assert all(not first.overlaps(second) for first, second in itertools.pairwise(networks))
    assert len({node_objects.node_address(one) for one in made}) == 300
    assert [node_objects.number_of(one) for one in made] == list(range(300))


def test_new_node_has_the_fields_of_a_kubelet() -> None:
    made = node(1, workload_node_capacity={"cpu": "4"}, workload_node_labels={"zone": "z{i}"})
    assert made["metadata"]["labels"]["kubernetes.io/hostname"] == "kubist-node-1"
    assert made["metadata"]["labels"]["zone"] == "z1"
    status = made["status"]
    assert status["capacity"]["cpu"] == status["allocatable"]["cpu"] == "4"
    assert status["capacity"]["memory"] == "256Gi"
    assert [condition["type"] for condition in status["conditions"]] == [
        "MemoryPressure",
        "DiskPressure",
        "PIDPressure",
        "Ready",
    ]
    assert find(status["conditions"], "MemoryPressure") == {
        "type": "MemoryPressure",
        "status": "False",
        "reason": "KubeletHasSufficientMemory",
        "message": "kubelet has sufficient memory available",
        "lastHeartbeatTime": NOW,
        "lastTransitionTime": NOW,
    }
    assert find(status["conditions"], "DiskPressure")["message"] == "kubelet has no disk pressure"  # type: ignore[index]
    assert ready(made) == ("True", "KubeletReady")
    assert status["nodeInfo"]["machineID"] != node(0)["status"]["nodeInfo"]["machineID"]


def test_unchanged_status_keeps_its_heartbeat() -> None:
    first = node()
    again = reported(node(), 0, template(), LATER)
    assert again == first
    beat = reported(node(), 0, template(), LATER, heartbeat=True)
    assert find(beat["status"]["conditions"], "Ready")["lastHeartbeatTime"] == LATER  # type: ignore[index]
    assert find(beat["status"]["conditions"], "Ready")["lastTransitionTime"] == NOW  # type: ignore[index]


def test_node_of_a_user_keeps_its_size() -> None:
    held = node()
    held["status"]["capacity"] |= {"cpu": "8", "example.com/gpu": "2"}
    held["status"]["allocatable"]["cpu"] = "7"
    status = reported(held, 0, template(), LATER, of_user=True)["status"]
    assert (status["capacity"]["cpu"], status["allocatable"]["cpu"]) == ("8", "7")
    assert status["allocatable"]["example.com/gpu"] == "2"


def test_node_of_the_server_follows_its_template_and_keeps_other_resources() -> None:
    held = node()
    held["status"]["capacity"]["example.com/gpu"] = "2"
    status = reported(held, 0, template(workload_node_capacity={"cpu": "8"}), LATER)["status"]
    assert (status["capacity"]["cpu"], status["allocatable"]["cpu"]) == ("8", "8")
    assert status["allocatable"]["example.com/gpu"] == "2"


def test_states_of_the_annotation() -> None:
    held = node()
    held["metadata"]["annotations"][node_objects.STATE] = "NotReady, MemoryPressure"
    assert states_of(held) == ({"NotReady", "MemoryPressure"}, "")
    after = reported(held, 0, template(), LATER)
    assert ready(after) == ("False", "KubeletNotReady")
    pressure = find(after["status"]["conditions"], "MemoryPressure") or {}
    assert (pressure["status"], pressure["reason"]) == ("True", "KubeletHasInsufficientMemory")
    held["metadata"]["annotations"][node_objects.STATE] = "Sleepy"
    states, problem = states_of(held)
    assert not states
    assert "Sleepy is not one of NotReady, Unreachable" in problem


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    labels = {"topology.kubernetes.io/zone": "zone-{i%2}"}
    with Cluster(workloads=True, workload_nodes=3, workload_node_labels=labels) as shared:
        yield shared


def get(cluster: Cluster, name: str) -> Object:
    return cluster.request("GET", f"/api/v1/nodes/{name}")  # type: ignore[no-any-return]


def annotate(cluster: Cluster, name: str, state: str | None) -> None:
    body = {"metadata": {"annotations": {node_objects.STATE: state}}}
    cluster.request("PATCH", f"/api/v1/nodes/{name}", body, content_type=MERGE)


def test_nodes_are_registered_with_labels_and_networks(cluster: Cluster) -> None:
    nodes = [cluster.wait(f"node/kubist-node-{number}", "Ready") for number in range(3)]
    zones = [one["metadata"]["labels"]["topology.kubernetes.io/zone"] for one in nodes]
    assert zones == ["zone-0", "zone-1", "zone-0"]
    assert len({one["spec"]["podCIDR"] for one in nodes}) == 3


def test_deleted_node_comes_back(cluster: Cluster) -> None:
    old = cluster.wait("node/kubist-node-2", "Ready")
    cluster.delete("node/kubist-node-2")

    def is_new() -> bool:
        held = [n for n in cluster.list("nodes") if n["metadata"]["name"] == "kubist-node-2"]
        return bool(held) and held[0]["metadata"]["uid"] != old["metadata"]["uid"]

    wait_for(is_new)
    cluster.wait("node/kubist-node-2", "Ready")


def test_node_of_a_user_with_the_label_is_simulated(cluster: Cluster) -> None:
    labels = {node_objects.SIMULATED: "true"}
    capacity = {"cpu": "2", "example.com/gpu": "1"}
    cluster.load(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "mine", "labels": labels},
            "status": {"capacity": capacity},
        }
    )
    made = cluster.wait("node/mine", "Ready")
    assert made["status"]["allocatable"] | capacity == made["status"]["allocatable"]
    others = [one for one in cluster.list("nodes") if one["metadata"]["name"] != "mine"]
    assert made["spec"]["podCIDR"] not in {one["spec"].get("podCIDR") for one in others}
    assert node_objects.node_address(made) not in {node_objects.node_address(one) for one in others}
    leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
    lease = wait_for(
        lambda: [x for x in cluster.request("GET", leases)["items"] if x["metadata"]["name"] == "mine"]
    )[0]
    assert lease["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]


def test_node_can_be_not_ready_and_recovers(cluster: Cluster) -> None:
    cluster.wait("node/kubist-node-1", "Ready")
    annotate(cluster, "kubist-node-1", "NotReady")
    wait_for(lambda: ready(get(cluster, "kubist-node-1")) == ("False", "KubeletNotReady"))
    annotate(cluster, "kubist-node-1", None)
    wait_for(lambda: ready(get(cluster, "kubist-node-1")) == ("True", "KubeletReady"))


def test_unknown_state_is_reported_by_an_event(cluster: Cluster) -> None:
    cluster.wait("node/kubist-node-1", "Ready")
    annotate(cluster, "kubist-node-1", "Sleepy")
    events = "/api/v1/namespaces/default/events"

    def warned() -> list[str]:
        items = cluster.request("GET", events)["items"]
        return [event["message"] for event in items if event["reason"] == "InvalidNodeState"]

    assert "Sleepy is not one of" in wait_for(warned)[0]
    annotate(cluster, "kubist-node-1", None)


def test_simulated_nodes_alone_leave_scheduling_to_others() -> None:
    """`kubist apiserver --simulated-nodes`: the scheduler and the controllers run elsewhere."""
    with Cluster(simulated_nodes=2, controllers=("serviceaccount",)) as bare:
        for number in range(2):
            made = bare.wait(f"node/kubist-node-{number}", "Ready")
            assert [taint["key"] for taint in made["spec"]["taints"]] == ["node.kubernetes.io/not-ready"]
        wait_for(lambda: bare.list("serviceaccounts"))
        container = {"name": "c", "image": "i"}
        for name in ("bound", "free"):
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}}
            bare.load({**pod, "spec": {"containers": [container], "automountServiceAccountToken": False}})
        target = {"apiVersion": "v1", "kind": "Node", "name": "kubist-node-1"}
        binding = {"metadata": {"name": "bound"}, "target": target}
        bare.request("POST", "/api/v1/namespaces/default/pods/bound/binding", binding)
        assert bare.wait("pod/bound", "Ready")["status"]["hostIP"] == "198.18.0.2"
        assert "nodeName" not in bare.get("pod/free")["spec"]
