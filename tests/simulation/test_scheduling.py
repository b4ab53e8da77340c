"""Scheduling on a server: bindings, refusals, retries and preemption as clients see them."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from kubist.model.meta.conditions import find
from kubist.model.meta.object import Object
from kubist.testing import Cluster
from tests.waiting import wait_for

MERGE = "application/merge-patch+json"
NODES = ("kubist-node-0", "kubist-node-1")
_names = itertools.count()


@pytest.fixture(scope="module")
def shared() -> Iterator[Cluster]:
    size = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    with Cluster(workloads=True, workload_node_capacity=size) as cluster:
        for name in NODES:
            cluster.wait(f"node/{name}", "Ready")
        yield cluster


@pytest.fixture
def cluster(shared: Cluster) -> Iterator[Cluster]:
    """The server of this module without pods."""
    yield shared
    for pod in shared.list("pods"):
        shared.delete(f"pod/{pod['metadata']['name']}", gracePeriodSeconds=0)
    wait_for(lambda: not shared.list("pods"))


def make(cluster: Cluster, name: str = "", cpu: str = "", **spec: Any) -> str:
    """Creates a pod and returns its name."""
    name = name or f"p{next(_names)}"
    labels = spec.pop("labels", {})
    container: Object = {"name": "c", "image": "i"}
    if cpu:
        container["resources"] = {"requests": {"cpu": cpu}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": {"containers": [container], **spec},
    }
    cluster.load(pod)
    return name


def scheduled(cluster: Cluster, name: str) -> str:
    """Waits for the node of a pod."""
    return wait_for(lambda: str(cluster.get(f"pod/{name}")["spec"].get("nodeName", "")))


def condition(cluster: Cluster, name: str) -> Object:
    pod = cluster.get(f"pod/{name}")
    return find(pod["status"].get("conditions"), "PodScheduled") or {}


def refused(cluster: Cluster, name: str, text: str = "") -> str:
    """Waits until a pod is unschedulable for this reason, and returns the message."""

    def message() -> str:
        held = condition(cluster, name)
        return (
            str(held["message"]) if held.get("reason") == "Unschedulable" and text in held["message"] else ""
        )

    return wait_for(message)


def events(cluster: Cluster, name: str, reason: str) -> list[Object]:
    items = cluster.request("GET", "/api/v1/namespaces/default/events")["items"]
    return [e for e in items if e["involvedObject"]["name"] == name and e["reason"] == reason]


def patch(cluster: Cluster, path: str, body: Object) -> None:
    cluster.request("PATCH", path, body, content_type=MERGE)


def priority_class(cluster: Cluster, name: str, value: int, policy: str = "PreemptLowerPriority") -> None:
    if name not in [held["metadata"]["name"] for held in cluster.list("priorityclasses")]:
        cluster.load(
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": value,
                "preemptionPolicy": policy,
            }
        )


def test_binding_and_its_event(cluster: Cluster) -> None:
    name = make(cluster)
    node = scheduled(cluster, name)
    assert condition(cluster, name)["status"] == "True"
    event = wait_for(lambda: events(cluster, name, "Scheduled"))[0]
    assert event["message"] == f"Successfully assigned default/{name} to {node}"
    assert (event["action"], event["reportingComponent"]) == ("Binding", "default-scheduler")
    assert event["type"] == "Normal"


def test_pods_spread_over_the_nodes(cluster: Cluster) -> None:
    names = [make(cluster) for _ in range(8)]
    assert Counter(scheduled(cluster, name) for name in names) == dict.fromkeys(NODES, 4)


def test_unschedulable_pod_is_explained_and_scheduled_when_room_appears(cluster: Cluster) -> None:
    full = [make(cluster, cpu="3") for _ in NODES]
    for name in full:
        scheduled(cluster, name)
    name = make(cluster, cpu="2")
    message = (
        "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, preemption: 0/2 nodes are "
        "available: 2 No preemption victims found for incoming pod."
    )
    assert refused(cluster, name) == message
    held = condition(cluster, name)
    assert (held["status"], held["reason"]) == ("False", "Unschedulable")
    event = wait_for(lambda: events(cluster, name, "FailedScheduling"))[0]
    assert (event["message"], event["type"], event["action"]) == (message, "Warning", "Scheduling")
    cluster.delete(f"pod/{full[1]}", gracePeriodSeconds=0)
    scheduled(cluster, name)


def test_pod_of_another_scheduler_is_left_alone(cluster: Cluster) -> None:
    name = make(cluster, schedulerName="mine")
    other = make(cluster)
    scheduled(cluster, other)
    pod = cluster.get(f"pod/{name}")
    assert "nodeName" not in pod["spec"]
    assert not pod["status"].get("conditions")
    assert not events(cluster, name, "FailedScheduling")


def test_gated_pod_waits_until_the_gate_is_removed(cluster: Cluster) -> None:
    name = make(cluster, schedulingGates=[{"name": "example.com/gate"}])
    scheduled(cluster, make(cluster))
    held = condition(cluster, name)
    assert (held["status"], held["reason"]) == ("False", "SchedulingGated")
    patch(cluster, f"/api/v1/namespaces/default/pods/{name}", {"spec": {"schedulingGates": None}})
    scheduled(cluster, name)


def test_cordoned_nodes_get_no_pods(cluster: Cluster) -> None:
    for node in NODES:
        patch(cluster, f"/api/v1/nodes/{node}", {"spec": {"unschedulable": True}})
    name = make(cluster)
    refused(cluster, name, "2 node(s) were unschedulable")
    patch(cluster, f"/api/v1/nodes/{NODES[1]}", {"spec": {"unschedulable": None}})
    assert scheduled(cluster, name) == NODES[1]
    patch(cluster, f"/api/v1/nodes/{NODES[0]}", {"spec": {"unschedulable": None}})
    wait_for(lambda: all(not node["spec"].get("taints") for node in cluster.list("nodes")))


def test_pod_is_tried_again_when_a_node_gets_the_label(cluster: Cluster) -> None:
    name = make(cluster, nodeSelector={"disk": "ssd"})
    refused(cluster, name, "2 node(s) didn't match Pod's node affinity/selector")
    patch(cluster, f"/api/v1/nodes/{NODES[1]}", {"metadata": {"labels": {"disk": "ssd"}}})
    assert scheduled(cluster, name) == NODES[1]


def test_anti_affinity_puts_one_pod_on_each_node(cluster: Cluster) -> None:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "solo"}}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    first = [make(cluster, affinity=affinity, labels={"app": "solo"}) for _ in NODES]
    assert {scheduled(cluster, name) for name in first} == set(NODES)
    third = make(cluster, affinity=affinity, labels={"app": "solo"})
    refused(cluster, third, "2 node(s) didn't match pod anti-affinity rules")
    cluster.delete(f"pod/{first[0]}", gracePeriodSeconds=0)
    scheduled(cluster, third)


def test_pod_waits_for_the_pod_it_has_affinity_to(cluster: Cluster) -> None:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "leader"}}}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    name = make(cluster, affinity=affinity)
    refused(cluster, name, "2 node(s) didn't match pod affinity rules")
    leader = make(cluster, labels={"app": "leader"})
    assert scheduled(cluster, name) == scheduled(cluster, leader)


def test_preemption_removes_less_important_pods(cluster: Cluster) -> None:
    priority_class(cluster, "important", 1000)
    victims = [make(cluster, cpu="3") for _ in NODES]
    for name in victims:
        scheduled(cluster, name)
    name = make(cluster, cpu="2", priorityClassName="important")
    node = scheduled(cluster, name)
    left = {pod["metadata"]["name"] for pod in cluster.list("pods")}
    gone = [victim for victim in victims if victim not in left]
    assert len(gone) == 1
    event = wait_for(lambda: events(cluster, gone[0], "Preempted"))[0]
    uid = cluster.get(f"pod/{name}")["metadata"]["uid"]
    assert event["message"] == f"Preempted by pod {uid} on node {node}"
    failed = wait_for(lambda: events(cluster, name, "FailedScheduling"))[0]
    assert failed["message"] == "0/2 nodes are available: 2 Insufficient cpu."
    assert "nominatedNodeName" not in cluster.get(f"pod/{name}")["status"]


def test_preemption_policy_never_waits(cluster: Cluster) -> None:
    priority_class(cluster, "patient", 1000, "Never")
    for name in [make(cluster, cpu="3") for _ in NODES]:
        scheduled(cluster, name)
    name = make(cluster, cpu="2", priorityClassName="patient")
    text = "2 Insufficient cpu. no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never."
    assert refused(cluster, name).endswith(text)
    assert len(cluster.list("pods")) == 3


def test_pod_waits_for_its_claim(cluster: Cluster) -> None:
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "late"}}
    name = make(cluster, volumes=[volume])
    message = '0/2 nodes are available: persistentvolumeclaim "late" not found. not found'
    assert refused(cluster, name) == message
    cluster.load(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "late"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }
    )
    scheduled(cluster, name)


def test_claim_waits_for_its_first_consumer(cluster: Cluster) -> None:
    cluster.load(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "patient"},
            "provisioner": "example.com/disks",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "patient"},
            "spec": {
                "storageClassName": "patient",
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        },
    )
    scheduled(cluster, make(cluster))
    assert cluster.get("persistentvolumeclaim/patient")["status"]["phase"] == "Pending"
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "patient"}}
    name = make(cluster, volumes=[volume])
    node = scheduled(cluster, name)
    claim = cluster.get("persistentvolumeclaim/patient")
    assert claim["status"]["phase"] == "Bound"
    assert claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == node


def test_waiting_claim_gets_the_volume_of_a_node(cluster: Cluster) -> None:
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": [NODES[1]]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    shared = {"storageClassName": "local", "accessModes": ["ReadWriteOnce"]}
    cluster.load(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "local"},
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "local"},
            "spec": {**shared, "resources": {"requests": {"storage": "1Gi"}}},
        },
    )
    name = make(cluster, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "local"}}])
    refused(cluster, name, "2 node(s) didn't find available persistent volumes to bind")
    cluster.load(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "disk"},
            "spec": {
                **shared,
                "capacity": {"storage": "2Gi"},
                "local": {"path": "/mnt"},
                "nodeAffinity": {"required": required},
            },
        }
    )
    assert scheduled(cluster, name) == NODES[1]
    claim = cluster.get("persistentvolumeclaim/local")
    assert (claim["spec"]["volumeName"], claim["status"]["phase"]) == ("disk", "Bound")


def test_node_that_appears_takes_waiting_pods(cluster: Cluster) -> None:
    name = make(cluster, cpu="6")
    refused(cluster, name, "2 Insufficient cpu")
    cluster.load(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "large", "labels": {"kubist.io/simulated": "true"}},
            "status": {"capacity": {"cpu": "16"}},
        }
    )
    assert scheduled(cluster, name) == "large"
    cluster.delete("node/large")
