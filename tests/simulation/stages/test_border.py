"""The border between Stages and the simulated kubelet and nodes."""

from __future__ import annotations

import pytest

from kubist.cluster.simulation.stages.player import Stages
from kubist.cluster.simulation.stages.watcher import StageWatcher
from kubist.testing import Cluster
from tests.simulation.stages.making import (
    CRD,
    IS_KEPT,
    IS_NEW,
    RUNNING,
    STAGES,
    needs,
    pod,
    selector,
    stage,
    status_of,
)
from tests.waiting import wait_for


def test_kubelet_runs_pods_that_no_stage_selects(server: Cluster) -> None:
    server.load(stage("others", selector=selector("nobody"), next={"statusTemplate": "phase: Failed"}))
    server.load(pod("unselected"))
    server.wait("pod/unselected", "Ready")
    assert "reason" not in status_of(server, "unselected")


def test_stage_that_selects_running_pods_leaves_the_rest_to_the_kubelet(server: Cluster) -> None:
    """A Stage for failures is added to the default behaviour: the kubelet starts the pod and removes it."""
    name = "chaos"
    running = needs(".status.phase", "In", "Running")
    failed = "phase: Failed\nreason: Chaos"
    server.load(stage(name, selector=selector(name, running, IS_KEPT), next={"statusTemplate": failed}))
    server.load(pod(name))
    wait_for(lambda: status_of(server, name).get("reason") == "Chaos")
    assert status_of(server, name)["containerStatuses"][0]["name"] == "c"
    server.request("DELETE", f"/api/v1/namespaces/default/pods/{name}")
    server.wait(f"pod/{name}", "delete")


def test_deleted_pod_that_no_stage_removes_is_removed_by_the_kubelet(server: Cluster) -> None:
    name = "abandoned"
    server.load(stage(name, selector=selector(name, IS_NEW, IS_KEPT), next={"statusTemplate": RUNNING}))
    server.load(pod(name))
    wait_for(lambda: status_of(server, name).get("reason") == "Staged")
    server.request("DELETE", f"/api/v1/namespaces/default/pods/{name}")
    server.wait(f"pod/{name}", "delete")


def test_pods_get_different_addresses(server: Cluster) -> None:
    ready = selector("address", IS_NEW)
    server.load(stage("address", selector=ready, next={"statusTemplate": RUNNING}))
    for number in range(5):
        server.load(pod(f"address-{number}", labels={"test": "address"}))
    wait_for(lambda: all(status_of(server, f"address-{number}").get("podIP") for number in range(5)))
    assert len({status_of(server, f"address-{number}")["podIP"] for number in range(5)}) == 5


def test_node_of_a_user_becomes_ready(server: Cluster) -> None:
    template = """
    {{ $now := Now }}
    conditions:
    {{ range NodeConditions }}
    - type: {{ .type | Quote }}
      status: {{ .status | Quote }}
      reason: {{ .reason | Quote }}
      lastHeartbeatTime: {{ $now | Quote }}
      lastTransitionTime: {{ or $.metadata.creationTimestamp $now | Quote }}
    {{ end }}
    addresses:
    - {type: Hostname, address: {{ NodeName | Quote }}}
    {{ with NodePort }}
    daemonEndpoints: {kubeletEndpoint: {Port: {{ . }}}}
    {{ end }}
    capacity:
    {{ with .status.capacity }}
    {{ YAML . 1 }}
    {{ else }}
      cpu: "4"
      pods: "10"
    {{ end }}
    """
    not_ready = needs('.status.conditions.[] | select(.type == "Ready") | .status', "NotIn", "True")
    made = stage(
        "node", "Node", selector=selector("staged-node", not_ready), next={"statusTemplate": template}
    )
    server.load(made)
    labels = {"test": "staged-node"}
    server.load({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "staged-node", "labels": labels}})
    node = server.wait("node/staged-node", "Ready")
    assert len(node["status"]["conditions"]) == 5
    assert node["status"]["addresses"] == [{"type": "Hostname", "address": "staged-node"}]
    assert node["status"]["capacity"]["cpu"] == "4"
    lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
    wait_for(
        lambda: "staged-node" in [held["metadata"]["name"] for held in server.request("GET", lease)["items"]]
    )
    wait_for(lambda: not server.get("node/staged-node")["spec"].get("taints"))
    made = pod("on-staged-node")
    made["spec"]["nodeName"] = "staged-node"
    server.load(made)
    server.wait("pod/on-staged-node", "Ready")


def test_kubelet_takes_over_when_the_stages_are_deleted(server: Cluster) -> None:
    name = "handed-over"
    held = {"statusTemplate": "reason: Held"}
    not_held = needs(".status.reason", "NotIn", "Held")
    server.load(stage(name, selector=selector(name, not_held), next=held), pod(name))
    wait_for(lambda: status_of(server, name).get("reason") == "Held")
    assert status_of(server, name)["phase"] == "Pending"
    server.request("DELETE", f"{STAGES}/{name}")
    server.wait(f"pod/{name}", "Ready")


def test_pod_may_come_before_its_node(server: Cluster) -> None:
    name = "homeless"
    server.load(stage(name, selector=selector(name, IS_NEW), next={"statusTemplate": RUNNING}))
    made = pod(name)
    made["spec"]["nodeName"] = "late-node"
    server.load(made)
    server.load({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "late-node"}})
    wait_for(lambda: status_of(server, name).get("reason") == "Staged")


@pytest.mark.kubist(workloads=True)
def test_nothing_is_kept_of_deleted_pods_and_stages(cluster: Cluster) -> None:
    """Of pods that wait for a node, and of pods that are deleted after their Stages."""
    cluster.load(CRD)
    cluster.load(stage("all", next={"statusTemplate": "reason: Staged"}))
    pods = "/api/v1/namespaces/default/pods"

    def load(name: str) -> None:
        made = pod(name)
        made["spec"]["nodeName"] = "no-node"
        cluster.load(made)

    load("first")
    wait_for(lambda: player(cluster)._homeless != {})
    cluster.request("DELETE", f"{pods}/first?gracePeriodSeconds=0")
    wait_for(lambda: (player(cluster)._homeless, player(cluster)._jobs) == ({}, {}))
    load("second")
    wait_for(lambda: player(cluster)._homeless != {})
    cluster.request("DELETE", f"{STAGES}/all")
    wait_for(lambda: (player(cluster)._homeless, player(cluster)._jobs) == ({}, {}))


def player(cluster: Cluster) -> Stages:
    manager = cluster.inner._loops
    assert manager is not None
    [player] = wait_for(
        lambda: [
            loop._player
            for loop in manager.loops
            if isinstance(loop, StageWatcher) and loop._player is not None
        ]
    )
    return player
