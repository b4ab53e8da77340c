"""Simulated kubelet on a server: it writes statuses and Events, and waits for times and objects."""

from __future__ import annotations

import ipaddress
import itertools
from typing import Any

import pytest

from kubist.testing import Cluster, Host
from tests.waiting import wait_for

_numbers = itertools.count()
MERGE = "application/merge-patch+json"


@pytest.fixture
def name() -> str:
    return f"pod-{next(_numbers)}"


def pod(name: str, outcome: str = "", **spec: Any) -> dict[str, Any]:
    annotations = {"kubist.io/outcome": outcome} if outcome else {}
    metadata = {"name": name, "annotations": annotations}
    spec = {"containers": [{"name": "web", "image": "web:1"}], "terminationGracePeriodSeconds": 30, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def held(obj: dict[str, Any]) -> dict[str, Any]:
    """Status of the first container."""
    statuses = obj["status"].get("containerStatuses")
    return statuses[0] if statuses else {"state": {}}


def reason(obj: dict[str, Any]) -> str:
    state = held(obj)["state"]
    return str((state.get("waiting") or state.get("terminated") or {}).get("reason", ""))


def events(server: Cluster, name: str) -> list[dict[str, Any]]:
    return [event for event in server.list("events") if event["involvedObject"]["name"] == name]


def said(server: Cluster, name: str, reason: str) -> dict[str, Any]:
    """The Event of a reason about a pod, once it is written."""
    wait_for(lambda: any(event["reason"] == reason for event in events(server, name)), pause=0.02)
    return next(event for event in events(server, name) if event["reason"] == reason)


def test_pod_runs_with_the_events_of_a_kubelet(server: Cluster, name: str) -> None:
    server.load(pod(name))
    made = server.wait(f"pod/{name}", "Ready")
    assert made["status"]["hostIPs"]
    assert made["status"]["podIPs"]
    started = said(server, name, "Started")
    assert started["message"] == "Container started"
    assert started["involvedObject"]["fieldPath"] == "spec.containers{web}"
    assert started["source"] == {"component": "kubelet", "host": made["spec"]["nodeName"]}
    assert [
        event["reason"] for event in events(server, name) if event["source"].get("component") == "kubelet"
    ] == [
        "Pulled",
        "Created",
        "Started",
    ]


def test_running_pod_is_written_once(server: Cluster, name: str) -> None:
    server.load(pod(name))
    made = server.wait(f"pod/{name}", "Ready")
    managers = [entry for entry in made["metadata"]["managedFields"] if entry["manager"] == "kubelet"]
    assert [entry["subresource"] for entry in managers] == ["status"]
    said(server, name, "Started")
    assert server.get(f"pod/{name}")["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


def test_outcome_of_a_template_reaches_its_pods(server: Cluster, name: str) -> None:
    metadata = {"labels": {"app": name}, "annotations": {"kubist.io/outcome": "crash-loop 7"}}
    template = {"metadata": metadata, "spec": pod(name)["spec"]}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}
    server.load({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec})

    def crashed() -> list[dict[str, Any]]:
        pods = [found for found in server.list("pods") if found["metadata"]["name"].startswith(f"{name}-")]
        return [found for found in pods if reason(found) == "CrashLoopBackOff"]

    wait_for(lambda: len(crashed()) == 1, pause=0.05)
    found = crashed()[0]
    assert held(found)["lastState"]["terminated"]["exitCode"] == 7
    assert held(found)["state"]["waiting"]["message"].startswith(
        "back-off 10s restarting failed container=web pod="
    )
    assert said(server, found["metadata"]["name"], "BackOff")["type"] == "Warning"
    assert server.get(f"deploy/{name}")["status"].get("readyReplicas", 0) == 0


def test_failing_job_pod_fails(server: Cluster, name: str) -> None:
    server.load(pod(name, "fail 3 after 300ms", restartPolicy="Never"))
    server.wait(f"pod/{name}", "Ready")
    failed = server.wait(f"pod/{name}", lambda found: found["status"]["phase"] == "Failed")
    assert held(failed)["state"]["terminated"]["exitCode"] == 3


def test_pod_starts_when_its_config_map_appears(server: Cluster, name: str) -> None:
    container = {"name": "web", "image": "web:1", "envFrom": [{"configMapRef": {"name": name}}]}
    server.load(pod(name, containers=[container]))
    server.wait(f"pod/{name}", lambda found: reason(found) == "CreateContainerConfigError")
    assert said(server, name, "Failed")["message"] == f'Error: configmap "{name}" not found'
    server.load({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
    server.wait(f"pod/{name}", "Ready")


def test_pod_starts_when_its_secret_appears(server: Cluster, name: str) -> None:
    server.load(pod(name, volumes=[{"name": "v", "secret": {"secretName": name}}]))
    event = said(server, name, "FailedMount")
    assert event["message"] == f'MountVolume.SetUp failed for volume "v" : secret "{name}" not found'
    assert reason(server.get(f"pod/{name}")) == "ContainerCreating"
    server.load({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}})
    server.wait(f"pod/{name}", "Ready")


def test_malformed_outcome_is_a_warning_and_the_pod_runs(server: Cluster, name: str) -> None:
    server.load(pod(name, "explode"))
    server.wait(f"pod/{name}", "Ready")
    event = said(server, name, "InvalidAnnotation")
    assert event["type"] == "Warning"
    assert event["message"] == 'annotation kubist.io/outcome: "explode" is not an outcome'
    assert event["count"] == 1


def test_changed_outcome_takes_effect(server: Cluster, name: str) -> None:
    server.load(pod(name, "never-ready"))
    server.wait(f"pod/{name}", lambda found: found["status"]["phase"] == "Running")
    path = f"/api/v1/namespaces/default/pods/{name}"
    server.request("PATCH", path, {"metadata": {"annotations": {"kubist.io/outcome": None}}}, MERGE)
    server.wait(f"pod/{name}", "Ready")


def test_deleted_pod_is_stopped_and_removed(server: Cluster, name: str) -> None:
    server.load(pod(name))
    server.wait(f"pod/{name}", "Ready")
    server.delete(f"pod/{name}")
    server.wait(f"pod/{name}", "delete")
    assert said(server, name, "Killing")["message"] == "Stopping container web"


def test_pod_with_a_finalizer_shows_its_end(server: Cluster, name: str) -> None:
    made = pod(name)
    made["metadata"]["finalizers"] = ["example.com/hold"]
    server.load(made)
    server.wait(f"pod/{name}", "Ready")
    server.delete(f"pod/{name}")
    stopped = server.wait(
        f"pod/{name}",
        lambda found: (
            found["status"]["phase"] == "Succeeded"
            and found["metadata"].get("deletionGracePeriodSeconds") == 0
        ),
    )
    assert held(stopped)["state"]["terminated"]["exitCode"] == 0
    path = f"/api/v1/namespaces/default/pods/{name}"
    server.request("PATCH", path, {"metadata": {"finalizers": None}}, MERGE)
    server.wait(f"pod/{name}", "delete")


def test_slow_pod_terminates_slowly(server: Cluster, name: str) -> None:
    server.load(pod(name, "slow-termination 700ms"))
    server.wait(f"pod/{name}", "Ready")
    server.delete(f"pod/{name}")
    said(server, name, "Killing")
    server.wait(f"pod/{name}", "delete")


def test_ephemeral_container_starts(server: Cluster, name: str) -> None:
    server.load(pod(name))
    server.wait(f"pod/{name}", "Ready")
    debug = {"spec": {"ephemeralContainers": [{"name": "debug", "image": "busybox:1"}]}}
    path = f"/api/v1/namespaces/default/pods/{name}/ephemeralcontainers"
    server.request("PATCH", path, debug, "application/strategic-merge-patch+json")
    found = server.wait(f"pod/{name}", lambda found: found["status"].get("ephemeralContainerStatuses"))
    assert "running" in found["status"]["ephemeralContainerStatuses"][0]["state"]


def test_resize_is_done(server: Cluster, name: str) -> None:
    container = {"name": "web", "image": "web:1", "resources": {"requests": {"cpu": "100m"}}}
    server.load(pod(name, containers=[container]))
    server.wait(f"pod/{name}", "Ready")
    change = {"spec": {"containers": [{"name": "web", "resources": {"requests": {"cpu": "200m"}}}]}}
    path = f"/api/v1/namespaces/default/pods/{name}/resize"
    server.request("PATCH", path, change, "application/strategic-merge-patch+json")
    done = server.wait(f"pod/{name}", lambda found: held(found).get("allocatedResources") == {"cpu": "200m"})
    assert done["status"]["allocatedResources"] == {"cpu": "200m"}
    said(server, name, "ResizeCompleted")


def test_pods_have_different_addresses(server: Cluster, name: str) -> None:
    names = [f"{name}-{number}" for number in range(5)]
    server.load(*(pod(made) for made in names))
    addresses = {server.wait(f"pod/{made}", "Ready")["status"]["podIP"] for made in names}
    assert len(addresses) == 5


def test_job_that_fails_once_succeeds(server: Cluster, name: str) -> None:
    script = "if [[ -r /data/foo ]]; then exit 0; else touch /data/foo; exit 1; fi"
    container = {
        "name": "c",
        "image": "busybox",
        "command": ["/bin/sh", "-c"],
        "args": [script],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    volumes = [{"name": "data", "emptyDir": {}}]
    template = {"spec": {"containers": [container], "volumes": volumes, "restartPolicy": "OnFailure"}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": template},
    }
    server.load(job)
    server.wait(f"job/{name}", "Complete")
    (made,) = [found for found in server.list("pods") if found["metadata"]["name"].startswith(f"{name}-")]
    assert held(made)["restartCount"] == 1


def test_state_survives_a_restart_of_the_server(kubist_host: Host, tmp_path: Any, name: str) -> None:
    settings: dict[str, Any] = {"workloads": True, "data_dir": str(tmp_path)}
    first = Cluster(**settings)
    with first:
        first.load(pod(name, "crash-loop"), pod(f"{name}-ok"))
        first.wait(f"pod/{name}", lambda found: reason(found) == "CrashLoopBackOff")
        before = first.wait(f"pod/{name}-ok", "Ready")
    with Cluster(**settings) as second:
        again = second.wait(f"pod/{name}", lambda found: found["status"]["phase"] == "Running")
        assert held(again)["restartCount"] == 1
        second.wait(f"pod/{name}-ok", "Ready")
        address = second.get(f"pod/{name}-ok")["status"]["podIP"]
        assert address == before["status"]["podIP"]
        second.load(pod(f"{name}-new"))
        assert second.wait(f"pod/{name}-new", "Ready")["status"]["podIP"] != address


def bound(name: str, **container: Any) -> dict[str, Any]:
    """A pod that is bound to a node past the scheduler."""
    return pod(name, containers=[{"name": "web", "image": "web:1", **container}], nodeName="kubist-node-0")


def test_host_port_in_use_rejects_a_pod_that_no_scheduler_saw(server: Cluster, name: str) -> None:
    ports = [{"containerPort": 80, "hostPort": 7000 + int(name.rpartition("-")[2])}]
    server.load(bound(name, ports=ports))
    server.wait(f"pod/{name}", "Ready")
    server.load(bound(f"{name}-b", ports=ports))
    rejected = server.wait(f"pod/{name}-b", lambda found: found["status"]["phase"] == "Failed")["status"]
    why = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
    assert (rejected["reason"], rejected["message"]) == ("NodePorts", f"Pod was rejected: {why}")
    assert said(server, f"{name}-b", "NodePorts")["message"] == why
    server.delete(f"pod/{name}")
    server.wait(f"pod/{name}", "delete")
    server.load(bound(f"{name}-c", ports=ports))
    server.wait(f"pod/{name}-c", "Ready")


def test_pod_that_is_too_large_for_its_node_is_rejected(server: Cluster, name: str) -> None:
    server.load(bound(name, resources={"requests": {"cpu": "1000"}}))
    rejected = server.wait(f"pod/{name}", lambda found: found["status"]["phase"] == "Failed")["status"]
    assert rejected["reason"] == "OutOfcpu"
    assert rejected["message"].startswith(
        "Pod was rejected: Node didn't have enough resource: cpu, requested: 1000000, used: "
    )


def test_pod_for_other_nodes_is_rejected(server: Cluster, name: str) -> None:
    server.load({**bound(name), "spec": {**bound(name)["spec"], "nodeSelector": {"disk": "none"}}})
    rejected = server.wait(f"pod/{name}", lambda found: found["status"]["phase"] == "Failed")["status"]
    assert rejected["reason"] == "NodeAffinity"


@pytest.mark.parametrize(
    ("ranges", "families"),
    [("10.96.0.0/16,fd00:96::/112", [4, 6]), ("fd00:96::/112,10.96.0.0/16", [6, 4]), ("fd00:96::/112", [6])],
)
def test_pods_have_the_ip_families_of_the_services(ranges: str, families: list[int]) -> None:
    with Cluster(workloads=True, service_cluster_ip_range=ranges) as cluster:
        cluster.load(pod("one"), pod("two"))
        made = [cluster.wait(f"pod/{name}", "Ready")["status"] for name in ("one", "two")]
    for status in made:
        for part, single in (("podIPs", "podIP"), ("hostIPs", "hostIP")):
            found = [entry["ip"] for entry in status[part]]
            assert [ipaddress.ip_address(address).version for address in found] == families
            assert status[single] == found[0]
    assert len({entry["ip"] for status in made for entry in status["podIPs"]}) == 2 * len(families)
