"""StatefulSets and DaemonSets of `--workloads` on a running server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubist.model.meta.object import Object
from kubist.testing import Cluster
from tests.control.workload_objects import LABELS, needs_kubectl, run_kubectl, template, workload
from tests.waiting import wait_for

pytestmark = pytest.mark.kubist(workloads=True)
MERGE = "application/merge-patch+json"
APPS = "/apis/apps/v1/namespaces/default"
HASH = "controller-revision-hash"


def patch(cluster: Cluster, resource: str, **spec: Any) -> None:
    cluster.request("PATCH", f"{APPS}/{resource}/web", {"spec": spec}, MERGE)


def ready(cluster: Cluster, count: int) -> Object:
    return cluster.wait(
        "sts/web",
        lambda obj: (
            obj["status"].get("readyReplicas", 0) == obj["status"].get("replicas", 0) == count
            and obj["status"]["observedGeneration"] == obj["metadata"]["generation"]
        ),
    )


def images(cluster: Cluster) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["spec"]["containers"][0]["image"] for pod in cluster.list("pods")}


def uids(cluster: Cluster) -> set[str]:
    return {pod["metadata"]["uid"] for pod in cluster.list("pods")}


def events(cluster: Cluster, kind: str) -> list[tuple[str, str]]:
    found = [event for event in cluster.list("events") if event["involvedObject"]["kind"] == kind]
    return [(event["reason"], event["message"]) for event in found]


def test_pods_have_stable_identity_and_events(cluster: Cluster) -> None:
    cluster.load(workload("StatefulSet", replicas=2, ordinals={"start": 3}))
    status = ready(cluster, 2)["status"]
    assert status["currentRevision"] == status["updateRevision"]
    pod = cluster.get("pod/web-3")
    assert pod["spec"]["hostname"] == "web-3"
    assert pod["spec"]["subdomain"] == "web"
    assert pod["metadata"]["labels"] == {
        **LABELS,
        "statefulset.kubernetes.io/pod-name": "web-3",
        "apps.kubernetes.io/pod-index": "3",
        HASH: status["updateRevision"],
    }
    text = "Create Pod web-4 in StatefulSet web successful"
    wait_for(lambda: ("SuccessfulCreate", text) in events(cluster, "StatefulSet"))
    patch(cluster, "statefulsets", replicas=1)
    cluster.wait("pod/web-4", "delete")
    text = "Delete Pod web-4 in StatefulSet web successful"
    wait_for(lambda: ("SuccessfulDelete", text) in events(cluster, "StatefulSet"))


def test_partition_updates_only_higher_ordinals(cluster: Cluster) -> None:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    cluster.load(workload("StatefulSet", replicas=2, updateStrategy=rolling))
    ready(cluster, 2)
    patch(cluster, "statefulsets", template=template("nginx:2"))
    wait_for(lambda: images(cluster) == {"web-0": "nginx:1", "web-1": "nginx:2"})
    status = ready(cluster, 2)["status"]
    assert status["currentRevision"] != status["updateRevision"]
    before = cluster.get("pod/web-0")["metadata"]["uid"]
    cluster.delete("pod/web-0")
    wait_for(lambda: before not in uids(cluster) and "web-0" in images(cluster))
    assert images(cluster)["web-0"] == "nginx:1"
    patch(cluster, "statefulsets", updateStrategy={"rollingUpdate": {"partition": 0}})
    wait_for(lambda: images(cluster) == {"web-0": "nginx:2", "web-1": "nginx:2"})
    cluster.wait("sts/web", lambda obj: obj["status"]["currentRevision"] == status["updateRevision"])


def test_on_delete_updates_a_pod_when_it_is_deleted(cluster: Cluster) -> None:
    cluster.load(workload("StatefulSet", replicas=2, updateStrategy={"type": "OnDelete"}))
    ready(cluster, 2)
    patch(cluster, "statefulsets", template=template("nginx:2"))
    ready(cluster, 2)
    cluster.delete("pod/web-1")
    wait_for(lambda: images(cluster) == {"web-0": "nginx:1", "web-1": "nginx:2"})


def test_failed_pod_is_recreated(cluster: Cluster) -> None:
    cluster.load(workload("StatefulSet", replicas=1))
    ready(cluster, 1)
    uid = cluster.get("pod/web-0")["metadata"]["uid"]
    body = {"status": {"phase": "Failed", "reason": "Evicted"}}
    cluster.request("PATCH", "/api/v1/namespaces/default/pods/web-0/status", body, MERGE)

    wait_for(lambda: len(uids(cluster)) == 1 and uid not in uids(cluster))


def test_retention_policy_deletes_claims(cluster: Cluster) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    policy = {"whenDeleted": "Delete", "whenScaled": "Delete"}
    cluster.load(
        workload(
            "StatefulSet",
            replicas=2,
            podManagementPolicy="Parallel",
            volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": spec}],
            persistentVolumeClaimRetentionPolicy=policy,
        )
    )
    ready(cluster, 2)
    text = "Create Claim data-web-0 Pod web-0 in StatefulSet web success"
    wait_for(lambda: ("SuccessfulCreate", text) in events(cluster, "StatefulSet"))

    def owner() -> str:
        owners = cluster.get("pvc/data-web-0")["metadata"].get("ownerReferences") or [{"kind": ""}]
        return str(owners[0]["kind"])

    wait_for(lambda: owner() == "StatefulSet")
    patch(cluster, "statefulsets", replicas=1)
    cluster.wait("pvc/data-web-1", "delete")
    assert cluster.get("pvc/data-web-0")
    patch(cluster, "statefulsets", replicas=2)
    ready(cluster, 2)
    cluster.delete("sts/web")
    cluster.wait("pvc/data-web-0", "delete")
    cluster.wait("pvc/data-web-1", "delete")


def test_orphan_with_a_name_of_the_set_is_adopted(cluster: Cluster) -> None:
    for name in ("web-0", "other-0"):
        pod: Object = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": LABELS}}
        cluster.load({**pod, "spec": template()["spec"]})
    cluster.load(workload("StatefulSet", replicas=1, updateStrategy={"type": "OnDelete"}))
    label = "statefulset.kubernetes.io/pod-name"
    found = cluster.wait("pod/web-0", lambda pod: pod["metadata"]["labels"].get(label) == "web-0")
    assert found["metadata"]["ownerReferences"][0]["kind"] == "StatefulSet"
    assert "ownerReferences" not in cluster.get("pod/other-0")["metadata"]


@needs_kubectl
@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet"])
def test_kubectl_undoes_a_rollout(cluster: Cluster, kind: str) -> None:
    cluster.load(workload(kind))
    name = f"{kind.lower()}/web"
    run_kubectl(cluster, "rollout", "status", name, "--timeout=30s")
    run_kubectl(cluster, "set", "image", name, "c=nginx:2")
    run_kubectl(cluster, "rollout", "status", name, "--timeout=30s")
    assert set(images(cluster).values()) == {"nginx:2"}
    assert run_kubectl(cluster, "rollout", "history", name).split()[-4::2] == ["1", "2"]
    run_kubectl(cluster, "rollout", "undo", name)
    run_kubectl(cluster, "rollout", "status", name, "--timeout=30s")
    assert set(images(cluster).values()) == {"nginx:1"}
    revisions = sorted(found["revision"] for found in cluster.list("controllerrevisions"))
    assert revisions == [2, 3]


def daemons(cluster: Cluster, count: int = 0) -> int:
    """Waits until a DaemonSet is available on all nodes, or on `count` nodes. Returns their number."""

    def done() -> int:
        status = cluster.get("ds/web").get("status") or {}
        wanted = count or len(cluster.list("nodes"))
        counts = ("desiredNumberScheduled", "numberAvailable", "updatedNumberScheduled")
        generation = cluster.get("ds/web")["metadata"]["generation"]
        is_done = status.get("observedGeneration") == generation
        return wanted if is_done and all(status.get(part) == wanted for part in counts) else 0

    return wait_for(done, pause=0.02)


def test_daemon_set_follows_labels_of_nodes(cluster: Cluster) -> None:
    cluster.load(workload("DaemonSet", template=template(nodeSelector={"disk": "ssd"})))
    cluster.wait("ds/web", lambda obj: obj["status"].get("observedGeneration") == 1)
    assert cluster.list("pods") == []
    wait_for(lambda: cluster.list("nodes"))
    node = cluster.list("nodes")[0]["metadata"]["name"]
    labels: Object = {"metadata": {"labels": {"disk": "ssd"}}}
    cluster.request("PATCH", f"/api/v1/nodes/{node}", labels, MERGE)
    daemons(cluster, 1)
    (pod,) = cluster.list("pods")
    assert pod["spec"]["nodeName"] == node
    labels["metadata"]["labels"]["disk"] = None
    cluster.request("PATCH", f"/api/v1/nodes/{node}", labels, MERGE)
    cluster.wait(f"pod/{pod['metadata']['name']}", "delete")
    cluster.wait("ds/web", lambda obj: obj["status"]["desiredNumberScheduled"] == 0)


def test_daemon_set_with_surge_keeps_every_node_covered(cluster: Cluster) -> None:
    wait_for(lambda: cluster.list("nodes"))
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    cluster.load(workload("DaemonSet", updateStrategy=rolling))
    daemons(cluster)
    patch(cluster, "daemonsets", template=template("nginx:2"))
    count = daemons(cluster)
    wait_for(lambda: list(images(cluster).values()) == ["nginx:2"] * count)


def test_revision_of_a_daemon_set_has_sorted_keys(cluster: Cluster) -> None:
    """Clients compare the text of a revision with their own text of the template."""
    cluster.load(workload("DaemonSet"))
    wait_for(lambda: cluster.list("controllerrevisions"))
    (revision,) = cluster.list("controllerrevisions")
    held = cluster.get("ds/web")["spec"]["template"]
    wanted = {"spec": {"template": {"$patch": "replace", **held}}}
    assert json.dumps(revision["data"]) == json.dumps(wanted, sort_keys=True)
    assert revision["metadata"]["labels"][HASH]


def test_failed_daemon_pod_is_replaced_with_a_warning(cluster: Cluster) -> None:
    wait_for(lambda: cluster.list("nodes"))
    cluster.load(workload("DaemonSet"))
    daemons(cluster)
    name = cluster.list("pods")[0]["metadata"]["name"]
    path = f"/api/v1/namespaces/default/pods/{name}/status"
    cluster.request("PATCH", path, {"status": {"phase": "Failed"}}, MERGE)
    cluster.wait(f"pod/{name}", "delete")
    daemons(cluster)
    wait_for(lambda: "FailedDaemonPod" in [reason for reason, _ in events(cluster, "DaemonSet")])
