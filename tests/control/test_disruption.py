"""PodDisruptionBudgets: expected pods, healthy pods, conditions and Events."""

from __future__ import annotations

from typing import Any

import pytest

from kubist.cluster.control.disruption import (
    DELETION_TIMEOUT,
    Expected,
    budget_status,
    failed_status,
    target_time,
)
from kubist.model.meta.object import Object
from kubist.model.meta.times import parse_time
from kubist.testing import Cluster
from tests.waiting import wait_for

NOW = "2030-01-01T00:00:00Z"
LABELS = {"app": "web"}
POD = {"containers": [{"name": "c", "image": "nginx"}]}
MERGE = "application/merge-patch+json"


def pod(name: str, *, ready: bool = True, gone: bool = False) -> Object:
    metadata = {"name": name, **({"deletionTimestamp": NOW} if gone else {})}
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    return {"metadata": metadata, "status": {"phase": "Running", "conditions": conditions}}


def budget(name: str = "b", **spec: Any) -> Object:
    body = {"selector": {"matchLabels": dict(LABELS)}, **spec}
    metadata = {"name": name}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": body}


@pytest.mark.parametrize(
    ("expected", "allowed", "reason"),
    [
        (Expected(4, 2), 1, "SufficientPods"),
        (Expected(4, 3), 0, "InsufficientPods"),
        (Expected(4, 9), 0, "InsufficientPods"),
        (Expected(0, 0), 0, "InsufficientPods"),
    ],
)
def test_healthy_pods_above_the_desired_number_may_be_evicted(
    expected: Expected, allowed: int, reason: str
) -> None:
    pods = [*map(pod, "abc"), pod("d", ready=False), pod("e", gone=True), pod("evicted")]
    held = {**budget(), "status": {}}
    held["metadata"]["generation"] = 3
    status = budget_status(held, pods, expected, {"evicted": NOW}, NOW)
    (condition,) = status.pop("conditions")
    assert status == {
        "currentHealthy": 3,
        "desiredHealthy": expected.healthy,
        "disruptionsAllowed": allowed,
        "expectedPods": expected.pods,
        "observedGeneration": 3,
        "disruptedPods": {"evicted": NOW},
    }
    assert (condition["reason"], condition["observedGeneration"]) == (reason, 3)


def test_unknown_controller_forbids_disruptions() -> None:
    held = {**budget(), "status": {"disruptionsAllowed": 3, "currentHealthy": 5, "observedGeneration": 2}}
    status = failed_status(held, "no controller", NOW)
    (condition,) = status["conditions"]
    assert (status["disruptionsAllowed"], status["currentHealthy"]) == (0, 5)
    assert (condition["reason"], condition["message"]) == ("SyncFailed", "no controller")
    assert condition["observedGeneration"] == 2


def test_disruption_target_expires_only_on_running_pods() -> None:
    condition = {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": NOW}
    held = pod("a")
    held["status"]["conditions"].append(condition)
    assert target_time(held) == parse_time(NOW)
    assert target_time({**held, "status": {**held["status"], "phase": "Failed"}}) is None
    assert target_time(pod("a")) is None
    condition["reason"] = "TerminationByKubelet"
    assert target_time(held) is None


def reasons(cluster: Cluster, kind: str) -> dict[str, str]:
    found = [event for event in cluster.list("events") if event["involvedObject"]["kind"] == kind]
    return {event["reason"]: event["message"] for event in found}


@pytest.mark.kubist(workloads=True)
def test_expected_pods_are_the_scale_of_the_deployment(cluster: Cluster) -> None:
    cluster.load(budget(maxUnavailable="25%"))
    wait_for(lambda: reasons(cluster, "PodDisruptionBudget").get("NoPods") == "No matching pods found")
    template = {"metadata": {"labels": LABELS}, "spec": POD}
    spec = {"replicas": 4, "selector": {"matchLabels": LABELS}, "template": template}
    cluster.load({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})
    status = cluster.wait("pdb/b", lambda held: held["status"].get("disruptionsAllowed") == 1)["status"]
    assert (status["expectedPods"], status["desiredHealthy"], status["currentHealthy"]) == (4, 3, 4)
    path = "/apis/apps/v1/namespaces/default/deployments/web/scale"
    cluster.request("PATCH", path, {"spec": {"replicas": 8}}, MERGE)
    status = cluster.wait("pdb/b", lambda held: held["status"].get("disruptionsAllowed") == 2)["status"]
    assert status["expectedPods"] == 8


def make_pod(cluster: Cluster, name: str, **metadata: Any) -> Object:
    body = {"metadata": {"name": name, "labels": LABELS, **metadata}, "spec": POD}
    made: Object = cluster.request("POST", "/api/v1/namespaces/default/pods", body)
    return made


def test_pods_without_controller_are_reported(cluster: Cluster) -> None:
    cluster.load(budget(minAvailable="50%"))
    make_pod(cluster, "alone")
    wait_for(lambda: "UnmanagedPods" in reasons(cluster, "PodDisruptionBudget"))
    text = reasons(cluster, "PodDisruptionBudget")["UnmanagedPods"]
    assert "&LabelSelector{MatchLabels:map[string]string{app: web,}," in text


def test_unknown_controller_is_reported(cluster: Cluster) -> None:
    owner = {"apiVersion": "example.com/v1", "kind": "Unknown", "name": "x", "uid": "x", "controller": True}
    make_pod(cluster, "owned", ownerReferences=[owner])
    cluster.load(budget(maxUnavailable=1))
    held = cluster.wait(
        "pdb/b", lambda held: any(c["reason"] == "SyncFailed" for c in held["status"].get("conditions") or ())
    )
    assert held["status"]["conditions"][0]["message"] == 'found no controllers for pod "owned"'
    wait_for(lambda: "CalculateExpectedPodCountFailed" in reasons(cluster, "PodDisruptionBudget"))


def test_pod_of_several_budgets_is_reported(cluster: Cluster) -> None:
    cluster.load(budget("one", minAvailable=1), budget("two", minAvailable=1))
    make_pod(cluster, "p")
    text = 'Pod "default"/"p" matches multiple PodDisruptionBudgets.  Chose "one" arbitrarily.'
    wait_for(lambda: reasons(cluster, "Pod").get("MultiplePodDisruptionBudgets") == text)


def test_evicted_pod_that_stays_counts_again(cluster: Cluster) -> None:
    """The eviction sets DisruptionTarget and disruptedPods. Both end after two minutes."""
    make_pod(cluster, "p", finalizers=["example.com/wait"])
    path = "/api/v1/namespaces/default/pods/p/status"
    old = "2020-01-01T00:00:00Z"
    ready = {"type": "Ready", "status": "True"}
    target = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    conditions = [ready, {**target, "lastTransitionTime": old}]
    cluster.request("PATCH", path, {"status": {"phase": "Running", "conditions": conditions}}, MERGE)
    cluster.wait(
        "pod/p",
        lambda held: any(
            c["type"] == "DisruptionTarget" and c["status"] == "False" for c in held["status"]["conditions"]
        ),
    )
    cluster.load(budget(minAvailable=0))
    cluster.wait("pdb/b", lambda held: held["status"].get("currentHealthy") == 1)
    path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/b/status"
    cluster.request("PATCH", path, {"status": {"disruptedPods": {"p": old}}}, MERGE)
    wait_for(lambda: "NotDeleted" in reasons(cluster, "Pod"))
    held = cluster.wait("pdb/b", lambda held: "disruptedPods" not in held["status"])
    assert held["status"]["currentHealthy"] == 1
    assert DELETION_TIMEOUT == 120
