"""Deployments, ReplicaSets and ReplicationControllers of `--workloads` on a running server."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from kubist.model.meta.object import Object
from kubist.testing import Cluster
from tests.control.workload_objects import LABELS, needs_kubectl, run_kubectl, template, workload
from tests.waiting import wait_for

pytestmark = pytest.mark.kubist(workloads=True)
MERGE = "application/merge-patch+json"
PATH = "/apis/apps/v1/namespaces/default/deployments/web"
STUCK = {"nodeSelector": {"disk": "none"}}
"""Pods with this spec stay pending."""
REVISION = "deployment.kubernetes.io/revision"


def patch(cluster: Cluster, **spec: Any) -> Object:
    changed: Object = cluster.request("PATCH", PATH, {"spec": spec}, MERGE)
    return changed


def settled(cluster: Cluster) -> Object:
    """The deployment when its rollout is complete."""

    def done(obj: Object) -> bool:
        status, wanted = obj["status"], obj["spec"]["replicas"]
        counts = [status.get(part, 0) for part in ("replicas", "updatedReplicas", "availableReplicas")]
        return counts == [wanted] * 3 and status["observedGeneration"] == obj["metadata"]["generation"]

    return cluster.wait("deploy/web", done)


def reason(obj: Object, kind: str) -> str:
    found = [c["reason"] for c in obj["status"].get("conditions") or () if c["type"] == kind]
    return str(found[0]) if found else ""


def events(cluster: Cluster, kind: str) -> list[tuple[str, str]]:
    found = [e for e in cluster.list("events") if e["involvedObject"]["kind"] == kind]
    return [(event["reason"], event["message"]) for event in found]


def sets(cluster: Cluster) -> dict[str, Object]:
    """ReplicaSets by the image of their template."""
    return {
        held["spec"]["template"]["spec"]["containers"][0]["image"]: held
        for held in cluster.list("replicasets")
    }


def test_scaling_and_updates_are_recorded_as_events(cluster: Cluster) -> None:
    cluster.load(workload("Deployment", replicas=2, strategy={"rollingUpdate": {"maxSurge": 1}}))
    settled(cluster)
    (first,) = sets(cluster).values()
    name = first["metadata"]["name"]
    up = ("ScalingReplicaSet", f"Scaled up replica set {name} from 0 to 2")
    wait_for(lambda: up in events(cluster, "Deployment"))
    patch(cluster, replicas=3)
    settled(cluster)
    patch(cluster, template=template("nginx:2"))
    settled(cluster)
    wanted = [
        ("ScalingReplicaSet", f"Scaled up replica set {name} from 2 to 3"),
        ("ScalingReplicaSet", f"Scaled down replica set {name} from 1 to 0"),
    ]
    wait_for(lambda: all(event in events(cluster, "Deployment") for event in wanted))
    (event, *_) = [e for e in cluster.list("events") if e["reason"] == "ScalingReplicaSet"]
    assert event["source"] == {"component": "deployment-controller"}
    wait_for(
        lambda: {"SuccessfulCreate", "SuccessfulDelete"} <= {r for r, _ in events(cluster, "ReplicaSet")}
    )
    texts = [text for _, text in events(cluster, "ReplicaSet")]
    assert any(text.startswith(f"Created pod: {name}-") for text in texts)


def test_rollout_stops_at_the_deadline_and_continues_after_a_rollback(cluster: Cluster) -> None:
    bounds = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    cluster.load(workload("Deployment", replicas=3, progressDeadlineSeconds=1, strategy=bounds))
    settled(cluster)
    patch(cluster, template=template("nginx:2", **STUCK))
    stuck = cluster.wait("deploy/web", lambda obj: reason(obj, "Progressing") == "ProgressDeadlineExceeded")
    assert stuck["status"]["availableReplicas"] == 3
    assert stuck["status"]["unavailableReplicas"] == 1
    assert reason(stuck, "Available") == "MinimumReplicasAvailable"
    patch(cluster, template={"spec": {**template()["spec"], "nodeSelector": None}})
    done = settled(cluster)
    assert reason(done, "Progressing") == "NewReplicaSetAvailable"
    assert done["metadata"]["annotations"][REVISION] == "3"


def test_moved_clock_ends_deadline_and_minimum_of_ready_seconds(cluster: Cluster) -> None:
    cluster.clock.freeze()
    cluster.load(workload("Deployment", replicas=2, minReadySeconds=60, progressDeadlineSeconds=600))
    waiting = cluster.wait("deploy/web", lambda obj: obj["status"].get("readyReplicas") == 2)
    assert "availableReplicas" not in waiting["status"]
    cluster.clock.advance("61s")
    settled(cluster)
    patch(cluster, template=template("nginx:2", **STUCK))
    cluster.wait("deploy/web", lambda obj: obj["status"].get("updatedReplicas") == 1)
    cluster.clock.advance("11m")
    cluster.wait("deploy/web", lambda obj: reason(obj, "Progressing") == "ProgressDeadlineExceeded")


@pytest.mark.parametrize(
    ("kind", "count"), [("StatefulSet", "availableReplicas"), ("DaemonSet", "numberAvailable")]
)
def test_minimum_of_ready_seconds_delays_availability(cluster: Cluster, kind: str, count: str) -> None:
    cluster.clock.freeze()
    spec = {"serviceName": "web"} if kind == "StatefulSet" else {}
    cluster.load(workload(kind, minReadySeconds=60, **spec))
    reference = f"{kind.lower()}/web"
    ready = "readyReplicas" if kind == "StatefulSet" else "numberReady"
    waiting = cluster.wait(reference, lambda obj: obj["status"].get(ready, 0) >= 1)
    assert not waiting["status"].get(count)
    cluster.clock.advance("61s")
    cluster.wait(reference, lambda obj: obj["status"].get(count, 0) >= 1)


def test_paused_deployment_scales_in_proportion_and_does_not_roll_out(cluster: Cluster) -> None:
    bounds = {"rollingUpdate": {"maxSurge": 2, "maxUnavailable": 0}}
    cluster.load(workload("Deployment", replicas=4, strategy=bounds))
    settled(cluster)
    patch(cluster, template=template("nginx:2", **STUCK))
    wait_for(lambda: "nginx:2" in sets(cluster) and sets(cluster)["nginx:2"]["spec"]["replicas"] == 2)
    patch(cluster, paused=True, replicas=10)
    cluster.wait("deploy/web", lambda obj: reason(obj, "Progressing") == "DeploymentPaused")

    def sizes() -> dict[str, int]:
        return {image: held["spec"]["replicas"] for image, held in sets(cluster).items()}

    wait_for(lambda: sizes() == {"nginx:1": 8, "nginx:2": 4})
    patch(cluster, template=template("nginx:3"))
    wait_for(lambda: _observed(cluster))
    assert set(sizes()) == {"nginx:1", "nginx:2"}
    patch(cluster, paused=None, template={"spec": {**template("nginx:3")["spec"], "nodeSelector": None}})
    settled(cluster)
    assert sizes() == {"nginx:1": 0, "nginx:2": 0, "nginx:3": 10}


def _observed(cluster: Cluster) -> bool:
    obj = cluster.get("deploy/web")
    return bool(obj["status"]["observedGeneration"] == obj["metadata"]["generation"])


def test_old_replica_sets_above_the_history_limit_are_deleted(cluster: Cluster) -> None:
    cluster.load(workload("Deployment", replicas=1, revisionHistoryLimit=1))
    for number in (2, 3, 4):
        settled(cluster)
        patch(cluster, template=template(f"nginx:{number}"))
    settled(cluster)
    wait_for(lambda: set(sets(cluster)) == {"nginx:3", "nginx:4"})


def test_replica_set_of_another_owner_changes_the_hash(cluster: Cluster) -> None:
    """A ReplicaSet that has the wanted name but another template is a collision."""
    cluster.load(workload("Deployment", replicas=1))
    settled(cluster)
    (first,) = sets(cluster).values()
    cluster.delete("deploy/web")
    cluster.wait(f"rs/{first['metadata']['name']}", "delete")
    other = workload("ReplicaSet", replicas=0)
    other["metadata"]["name"] = first["metadata"]["name"]
    other["spec"]["selector"]["matchLabels"] = {"app": "other"}
    other["spec"]["template"]["metadata"]["labels"] = {"app": "other"}
    cluster.load(other)
    cluster.load(workload("Deployment", replicas=1))
    done = settled(cluster)
    assert done["status"]["collisionCount"] == 1
    assert len(cluster.list("replicasets")) == 2


def test_quota_is_reported_as_replica_failure(cluster: Cluster) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}}
    cluster.load({**quota, "spec": {"hard": {"pods": "1"}}})
    cluster.wait("resourcequota/q", lambda obj: obj.get("status", {}).get("hard"))
    cluster.load(workload("Deployment", replicas=2))
    failed = cluster.wait("deploy/web", lambda obj: reason(obj, "ReplicaFailure") == "FailedCreate")
    (text,) = [c["message"] for c in failed["status"]["conditions"] if c["type"] == "ReplicaFailure"]
    assert "exceeded quota: q" in text
    wait_for(
        lambda: any(r == "FailedCreate" and "exceeded quota" in t for r, t in events(cluster, "ReplicaSet"))
    )
    patch(cluster, replicas=1)
    cluster.wait("deploy/web", lambda obj: not reason(obj, "ReplicaFailure"))


def test_deprecated_rollback_annotation_restores_a_revision(cluster: Cluster) -> None:
    cluster.load(workload("Deployment", replicas=1))
    settled(cluster)
    patch(cluster, template=template("nginx:2"))
    settled(cluster)
    body = {"metadata": {"annotations": {"deprecated.deployment.rollback.to": "1"}}}
    cluster.request("PATCH", PATH, body, MERGE)
    wait_for(
        lambda: (
            ("DeploymentRollback", 'Rolled back deployment "web" to revision 1')
            in events(cluster, "Deployment")
        )
    )
    done = settled(cluster)
    assert done["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:1"
    assert "deprecated.deployment.rollback.to" not in done["metadata"]["annotations"]


@pytest.mark.parametrize("kind", ["ReplicaSet", "ReplicationController"])
def test_pod_with_other_labels_is_released_and_replaced(cluster: Cluster, kind: str) -> None:
    body = workload(kind, replicas=2)
    if kind == "ReplicationController":
        body |= {"apiVersion": "v1"}
        body["spec"]["selector"] = dict(LABELS)
    cluster.load(body)
    reference = f"{kind.lower()}/web"
    cluster.wait(reference, lambda obj: obj["status"].get("availableReplicas") == 2)
    first = cluster.list("pods")[0]["metadata"]["name"]
    path = f"/api/v1/namespaces/default/pods/{first}"
    cluster.request("PATCH", path, {"metadata": {"labels": {"app": "free"}}}, MERGE)
    cluster.wait(f"pod/{first}", lambda pod: "ownerReferences" not in pod["metadata"])
    wait_for(lambda: len(cluster.list("pods")) == 3)
    cluster.request("PATCH", path, {"metadata": {"labels": LABELS}}, MERGE)
    wait_for(lambda: len([p for p in cluster.list("pods") if "deletionTimestamp" not in p["metadata"]]) == 2)
    none = 0 if kind == "ReplicaSet" else None
    cluster.wait(
        reference,
        lambda obj: obj["status"]["replicas"] == 2 and obj["status"].get("terminatingReplicas") == none,
    )


@needs_kubectl
def test_kubectl_shows_history_and_undoes_a_rollout(cluster: Cluster) -> None:
    kubectl = functools.partial(run_kubectl, cluster)

    cluster.load(workload("Deployment", replicas=1))
    settled(cluster)
    kubectl("annotate", "deployment/web", "kubernetes.io/change-cause=first")
    wait_for(lambda: "first" in kubectl("rollout", "history", "deployment/web"))
    kubectl("set", "image", "deployment/web", "c=nginx:2")
    kubectl("annotate", "deployment/web", "kubernetes.io/change-cause=second", "--overwrite")
    kubectl("rollout", "status", "deployment/web", "--timeout=30s")
    history = kubectl("rollout", "history", "deployment/web")
    assert [line.split() for line in history.splitlines()[2:4]] == [["1", "first"], ["2", "second"]]
    kubectl("rollout", "undo", "deployment/web")
    kubectl("rollout", "status", "deployment/web", "--timeout=30s")
    assert "nginx:1" in kubectl("get", "deployment", "web", "-o", "wide")
