"""Simulated pods and nodes, scripted from Python and over HTTP."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from kubist.testing import Cluster, Host
from kubist.testing.cluster import Refused

_numbers = itertools.count()


@pytest.fixture(scope="module")
def server(kubist_host: Host) -> Iterator[Cluster]:
    cluster = kubist_host.cluster(workloads=True)
    yield cluster
    cluster.stop()


@pytest.fixture
def name(server: Cluster) -> str:
    """Name and label `app` of a running pod with two containers."""
    name = f"web-{next(_numbers)}"
    make(server, name)
    return name


def make(server: Cluster, name: str, policy: str = "Always") -> None:
    containers = [{"name": "web", "image": "web:1"}, {"name": "log", "image": "log:1"}]
    metadata = {"name": name, "labels": {"app": name}}
    spec = {"containers": containers, "restartPolicy": policy}
    server.load({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    server.wait(f"pod/{name}", "Ready")


def held(pod: dict[str, Any], name: str = "web") -> dict[str, Any]:
    found: dict[str, Any] = next(held for held in pod["status"]["containerStatuses"] if held["name"] == name)
    return found


def test_failed_containers_are_restarted(server: Cluster, name: str) -> None:
    assert server.pods(f"app={name}").fail(reason="OOMKilled", exit_code=137, message="too big") == [name]
    pod = server.wait(f"pod/{name}", lambda pod: held(pod)["restartCount"] == 1 and held(pod)["ready"])
    ended = held(pod)["lastState"]["terminated"]
    assert (ended["exitCode"], ended["reason"], ended["message"]) == (137, "OOMKilled", "too big")
    assert held(pod, "log")["restartCount"] == 1


def test_one_container_fails(server: Cluster, name: str) -> None:
    server.pod(name).fail(container="log")
    pod = server.wait(f"pod/{name}", lambda pod: held(pod, "log")["restartCount"] == 1)
    assert held(pod)["restartCount"] == 0


def test_pod_that_never_restarts_fails_or_succeeds(server: Cluster) -> None:
    make(server, "fails", "Never")
    make(server, "succeeds", "Never")
    server.pod("fails").fail(exit_code=3)
    server.wait("pod/fails", lambda pod: pod["status"]["phase"] == "Failed")
    server.pod("succeeds").succeed()
    server.wait("pod/succeeds", lambda pod: pod["status"]["phase"] == "Succeeded")
    with pytest.raises(Refused, match="no container of the selected pods is running") as refused:
        server.pod("fails").fail()
    assert refused.value.code == 409


def test_crash_loop_lasts_until_the_outcome_is_reset(server: Cluster, name: str) -> None:
    server.pods(f"app={name}").crash_loop(exit_code=2)

    def in_back_off(pod: dict[str, Any]) -> bool:
        return bool(held(pod)["state"].get("waiting", {}).get("reason") == "CrashLoopBackOff")

    pod = server.wait(f"pod/{name}", in_back_off)
    assert held(pod)["lastState"]["terminated"]["exitCode"] == 2
    assert pod["metadata"]["annotations"]["kubist.io/outcome"] == "fail 2"
    server.pods(f"app={name}").outcome("")
    assert "kubist.io/outcome" not in server.get(f"pod/{name}")["metadata"].get("annotations", {})


def test_clock_ends_a_back_off(cluster_with_clock: Cluster) -> None:
    cluster = cluster_with_clock
    make(cluster, "web")
    cluster.pod("web").crash_loop()
    for restarts in (1, 2, 3):
        cluster.wait("pod/web", partial(is_waiting, restarts))
        cluster.clock.advance("5m")


def test_pod_goes_on_while_the_clock_is_frozen(cluster_with_clock: Cluster) -> None:
    cluster = cluster_with_clock
    cluster.clock.freeze()
    make(cluster, "web")
    cluster.pod("web").crash_loop()
    cluster.wait("pod/web", partial(is_waiting, 1))
    cluster.clock.advance("10s")
    cluster.wait("pod/web", partial(is_waiting, 2))


def is_waiting(restarts: int, pod: dict[str, Any]) -> bool:
    return held(pod)["restartCount"] == restarts and "waiting" in held(pod)["state"]


@pytest.fixture
def cluster_with_clock(kubist_host: Host) -> Iterator[Cluster]:
    cluster = kubist_host.cluster(workloads=True)
    yield cluster
    cluster.stop()


def test_readiness_changes_and_comes_back(server: Cluster, name: str) -> None:
    server.pod(name).outcome("slow-termination 5s")
    server.pod(name).outcome("run", container="log")
    server.pods(f"app={name}").ready(False)
    pod = server.wait(f"pod/{name}", lambda pod: not held(pod)["ready"] and not held(pod, "log")["ready"])
    assert pod["metadata"]["annotations"] == {
        "kubist.io/outcome": "never-ready, slow-termination 5s",
        "kubist.io/outcome.log": "run, never-ready",
    }
    server.pods(f"app={name}").ready()
    server.wait(f"pod/{name}", "Ready")


def test_usage_is_kept_in_the_annotation(server: Cluster, name: str) -> None:
    server.pods(f"app={name}").usage(cpu="500m", memory="64Mi")
    server.pod(name).usage(cpu="1")
    server.pod(name).usage(memory="1Gi", container="log")
    annotations = server.get(f"pod/{name}")["metadata"]["annotations"]
    assert annotations == {"kubist.io/usage": "cpu=1,memory=64Mi", "kubist.io/usage.log": "memory=1Gi"}


def test_kubelet_of_a_node_that_is_not_ready_leaves_its_pods_alone(server: Cluster) -> None:
    spec = {"nodeName": "kubist-node-1", "containers": [{"name": "web", "image": "web:1"}]}
    server.load({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stuck"}, "spec": spec})
    server.wait("pod/stuck", "Ready")
    node = server.node("kubist-node-1")
    node.not_ready()
    server.wait("node/kubist-node-1", is_not_ready)
    server.delete("pod/stuck")
    server.load(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "free"},
            "spec": {**spec, "nodeName": "kubist-node-0"},
        }
    )
    server.wait("pod/free", "Ready")
    assert "running" in held(server.get("pod/stuck"))["state"]
    node.ready()
    server.wait("pod/stuck", "delete")


def is_not_ready(node: dict[str, Any]) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "False" for c in node["status"]["conditions"])


def test_node_is_not_ready_and_recovers(server: Cluster) -> None:
    node = server.node("kubist-node-1")
    node.not_ready()
    server.wait("node/kubist-node-1", is_not_ready)
    node.ready()
    server.wait("node/kubist-node-1", "Ready")


@pytest.mark.parametrize(
    ("operation", "body", "code", "field"),
    [
        ("fail", {"exitCode": 256}, 422, "exitCode"),
        ("fail", {"exitCode": 0}, 422, "exitCode"),
        ("fail", {"exitCode": "1"}, 422, "exitCode"),
        ("fail", {"reason": "two words"}, 422, "reason"),
        ("fail", {"message": "x" * 5000}, 422, "message"),
        ("fail", {"reasons": "x"}, 422, "reasons"),
        ("fail", {"labelSelector": "a in"}, 422, "labelSelector"),
        ("fail", {"labelSelector": "a=b", "name": "c"}, 422, "labelSelector"),
        ("succeed", {"exitCode": 1}, 422, "exitCode"),
        ("ready", {}, 422, "ready"),
        ("ready", {"ready": "yes"}, 422, "ready"),
        ("outcome", {"outcome": "explode"}, 422, "outcome"),
        ("usage", {"cpu": "much"}, 422, "cpu"),
    ],
)
def test_invalid_operation_names_the_field(
    server: Cluster, operation: str, body: dict[str, Any], code: int, field: str
) -> None:
    with pytest.raises(Refused) as refused:
        server.request("POST", f"/kubist/v1/pods/{operation}", body)
    assert refused.value.code == code
    assert [cause["field"] for cause in refused.value.status["details"]["causes"]] == [field]


@pytest.mark.parametrize(
    ("path", "body", "code", "message"),
    [
        (
            "pods/fail",
            {"labelSelector": "app=none"},
            404,
            'no pod in namespace default has the labels "app=none"',
        ),
        ("pods/fail", {"name": "none"}, 404, 'pods "none" not found'),
        ("pods/fail", {"namespace": "none"}, 404, "no pod in namespace none"),
        ("pods/explode", {}, 404, "could not find"),
        ("pods/usage", {}, 400, "set cpu or memory"),
        ("nodes/not-ready", {"name": "none"}, 404, 'nodes "none" not found'),
        ("nodes/not-ready", {"labelSelector": "a=b"}, 404, 'no node has the labels "a=b"'),
        ("nodes/not-ready", {}, 422, "set either name or labelSelector"),
        ("nodes/explode", {"name": "kubist-node-0"}, 404, "could not find"),
    ],
)
def test_operation_without_a_target_is_rejected(
    server: Cluster, name: str, path: str, body: dict[str, Any], code: int, message: str
) -> None:
    with pytest.raises(Refused, match=re.escape(message)) as refused:
        server.request("POST", f"/kubist/v1/{path}", body)
    assert refused.value.code == code


def test_unknown_container_is_rejected(server: Cluster, name: str) -> None:
    with pytest.raises(Refused, match=r'has the name "web-.*" and a container "none"'):
        server.pod(name).fail(container="none")


def test_only_the_whole_pod_can_be_evicted(server: Cluster, name: str) -> None:
    with pytest.raises(Refused, match="only the whole pod can be evicted"):
        server.pod(name).outcome("evicted", container="web")
    server.pod(name).outcome("evicted")
    server.wait(f"pod/{name}", lambda pod: pod["status"].get("reason") == "Evicted")


def test_node_that_is_not_simulated_is_rejected(server: Cluster) -> None:
    server.load({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "real"}})
    with pytest.raises(Refused, match='node "real" is not simulated'):
        server.node("real").not_ready()


def test_server_without_workloads_says_so(cluster: Cluster) -> None:
    with pytest.raises(Refused, match="start it with --workloads") as refused:
        cluster.pods("app=web").fail()
    assert refused.value.code == 409
    with pytest.raises(Refused, match="start it with --workloads"):
        cluster.node("n").not_ready()


def test_user_needs_a_rule(server: Cluster, name: str) -> None:
    rules = [{"nonResourceURLs": ["/kubist/v1/pods/*"], "verbs": ["post"]}]
    allowed, other = server.user("scripter", rules=rules), server.user("other")
    body = {"name": name, "ready": False}
    assert allowed.request("POST", "/kubist/v1/pods/ready", body)["items"]
    with pytest.raises(Refused) as refused:
        other.request("POST", "/kubist/v1/pods/ready", body)
    assert refused.value.code == 403


def test_reprs_name_the_selection(server: Cluster) -> None:
    assert repr(server.pods("app=web")) == "<pods namespace default, labelSelector app=web>"
    assert repr(server.node("n")) == "<node n>"
