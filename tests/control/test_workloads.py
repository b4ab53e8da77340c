"""Simulated workloads: clients and tools see running pods, rollouts and endpoints without any node."""

from __future__ import annotations

import functools
import time
from typing import Any

import pytest

from kubist.testing import Cluster
from tests.control.workload_objects import needs_kubectl, run_kubectl
from tests.waiting import wait_for

pytestmark = pytest.mark.kubist(workloads=True, workload_nodes=1)
MERGE = "application/merge-patch+json"
LABELS = {"app": "web"}


def template(image: str = "nginx:1", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": image, "ports": [{"name": "http", "containerPort": 8080}]}
    return {"metadata": {"labels": dict(LABELS)}, "spec": {"containers": [container], **spec}}


def workload(kind: str, **spec: Any) -> dict[str, Any]:
    body = {"selector": {"matchLabels": dict(LABELS)}, "template": template(), **spec}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web"}, "spec": body}


def complete(deployment: dict[str, Any]) -> bool:
    status, wanted = deployment["status"], deployment["spec"]["replicas"]
    return bool(
        status.get("observedGeneration") == deployment["metadata"]["generation"]
        and status.get("updatedReplicas", 0) == status.get("replicas", 0) == wanted
        and status.get("availableReplicas", 0) == wanted
    )


def running(cluster: Cluster) -> list[dict[str, Any]]:
    return [pod for pod in cluster.list("pods") if "deletionTimestamp" not in pod["metadata"]]


def test_simulated_node_is_ready_and_labelled_as_simulated(cluster: Cluster) -> None:
    node = cluster.wait("node/kubist-node-0", "Ready")
    assert node["metadata"]["labels"]["kubist.io/simulated"] == "true"
    assert node["status"]["allocatable"]["pods"]


def test_simulated_node_renews_its_lease(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Tools judge a node by its Lease."""
    monkeypatch.setattr("kubist.cluster.simulation.nodes.RENEW_SECONDS", 0.1)
    cluster: Cluster = request.getfixturevalue("cluster")
    path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/kubist-node-0"
    cluster.wait("node/kubist-node-0", "Ready")
    first = cluster.request("GET", path)["spec"]["renewTime"]
    wait_for(lambda: cluster.request("GET", path)["spec"]["renewTime"] != first, pause=0.05)
    cluster.request("DELETE", path)

    def leases() -> list[str]:
        found = cluster.request("GET", path.rpartition("/")[0])
        return [lease["metadata"]["name"] for lease in found["items"]]

    wait_for(lambda: "kubist-node-0" in leases(), pause=0.05)


def test_pod_runs_and_deletion_completes(cluster: Cluster) -> None:
    cluster.load({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": template()["spec"]})
    pod = cluster.wait("pod/p", "Ready")
    assert pod["status"]["phase"] == "Running"
    assert pod["status"]["podIP"]
    assert pod["status"]["containerStatuses"][0]["ready"]
    cluster.delete("pod/p")
    cluster.wait("pod/p", "delete")


def test_status_of_a_running_pod_follows_its_spec(cluster: Cluster) -> None:
    cluster.load({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": template()["spec"]})
    pod = cluster.wait("pod/p", "Ready")
    assert pod["status"]["observedGeneration"] == pod["metadata"]["generation"] == 1
    path = "/api/v1/namespaces/default/pods/p"
    image = [{"op": "replace", "path": "/spec/containers/0/image", "value": "nginx:2"}]
    cluster.request("PATCH", path, image, content_type="application/json-patch+json")
    pod = cluster.wait("pod/p", lambda pod: pod["status"]["observedGeneration"] == 2)
    assert pod["status"]["containerStatuses"][0]["image"] == "nginx:2"
    assert {condition["observedGeneration"] for condition in pod["status"]["conditions"]} == {2}


def test_readiness_gate_makes_a_running_pod_ready(cluster: Cluster) -> None:
    spec = template(readinessGates=[{"conditionType": "example.com/gate"}])["spec"]
    cluster.load({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
    pod = cluster.wait("pod/p", "ContainersReady")
    ready = {condition["type"]: condition["status"] for condition in pod["status"]["conditions"]}
    assert ready["Ready"] == "False"
    path = "/api/v1/namespaces/default/pods/p/status"

    def check(state: str) -> None:
        gate = {"status": {"conditions": [{"type": "example.com/gate", "status": state}]}}
        cluster.request("PATCH", path, gate, content_type="application/strategic-merge-patch+json")
        cluster.wait("pod/p", lambda pod: condition_of(pod, "Ready") == state)

    check("True")
    check("False")


def condition_of(obj: dict[str, Any], kind: str) -> str:
    return next(str(found["status"]) for found in obj["status"]["conditions"] if found["type"] == kind)


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"])
def test_controller_corrects_a_status_that_a_client_wrote(cluster: Cluster, kind: str) -> None:
    count, available = ("readyReplicas", "availableReplicas")
    if kind == "DaemonSet":
        count, available = ("numberReady", "numberAvailable")
    spec = {"serviceName": "web"} if kind == "StatefulSet" else {}
    cluster.load(workload(kind, **spec))
    reference = f"{kind.lower()}/web"
    cluster.wait(reference, lambda found: found["status"].get(count) == 1)
    path = f"/apis/apps/v1/namespaces/default/{kind.lower()}s/web/status"
    for _ in range(2):
        changed = cluster.request("PATCH", path, {"status": {count: 0, available: 0}}, content_type=MERGE)
        assert not changed["status"].get(count)
        cluster.wait(reference, lambda found: found["status"].get(count) == 1)


def test_pod_without_suitable_node_is_unschedulable(cluster: Cluster) -> None:
    spec = template(nodeSelector={"disk": "none"})["spec"]
    cluster.load({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
    pod = cluster.wait("pod/p", lambda held: held["status"].get("conditions"))
    assert pod["status"]["conditions"][0]["reason"] == "Unschedulable"


@pytest.mark.kubist(workloads=True, workload_delay=1.0)
def test_workload_delay_delays_running(cluster: Cluster) -> None:
    cluster.load({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": template()["spec"]})
    pod = cluster.wait("pod/p", lambda held: held["spec"].get("nodeName"))
    assert pod["status"]["phase"] == "Pending"
    cluster.wait("pod/p", "Ready")


@pytest.mark.kubist(workloads=True, workload_delay=0.5)
def test_workload_delay_does_not_depend_on_the_fraction_of_the_second(cluster: Cluster) -> None:
    time.sleep((0.7 - time.time()) % 1)
    begun = time.monotonic()
    cluster.load({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": template()["spec"]})
    cluster.wait("pod/p", "Ready")
    assert time.monotonic() - begun >= 0.5


def test_deployment_rolls_out_scales_and_rolls_back(cluster: Cluster) -> None:
    cluster.load(workload("Deployment", replicas=3))
    cluster.wait("deploy/web", complete)
    (first,) = cluster.list("replicasets")
    path = "/apis/apps/v1/namespaces/default/deployments/web"
    change = {"spec": {"template": template("nginx:2")}}
    cluster.request("PATCH", path, change, MERGE)
    deployment = cluster.wait("deploy/web", complete)
    assert deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"
    assert {pod["spec"]["containers"][0]["image"] for pod in running(cluster)} == {"nginx:2"}
    cluster.request("PATCH", path, {"spec": {"replicas": 5}}, MERGE)
    cluster.wait("deploy/web", lambda held: complete(held) and held["status"]["replicas"] == 5)
    cluster.request("PATCH", path, {"spec": {"template": template("nginx:1")}}, MERGE)
    deployment = cluster.wait("deploy/web", complete)
    assert deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"
    again = cluster.get(f"rs/{first['metadata']['name']}")
    assert again["metadata"]["annotations"]["deployment.kubernetes.io/revision-history"] == "1"
    conditions = {held["type"]: held["reason"] for held in deployment["status"]["conditions"]}
    assert conditions == {"Available": "MinimumReplicasAvailable", "Progressing": "NewReplicaSetAvailable"}


def test_recreate_never_runs_old_and_new_together(cluster: Cluster) -> None:
    cluster.load(workload("Deployment", replicas=2, strategy={"type": "Recreate"}))
    cluster.wait("deploy/web", complete)
    path = "/apis/apps/v1/namespaces/default/deployments/web"
    cluster.request("PATCH", path, {"spec": {"template": template("nginx:2")}}, MERGE)
    cluster.wait("deploy/web", complete)
    assert {pod["spec"]["containers"][0]["image"] for pod in running(cluster)} == {"nginx:2"}


@pytest.mark.parametrize("policy", ["Background", "Foreground", "Orphan"])
def test_deployment_deletion_deletes_pods_unless_orphaned(cluster: Cluster, policy: str) -> None:
    cluster.load(workload("Deployment", replicas=2))
    cluster.wait("deploy/web", complete)
    (held,) = cluster.list("replicasets")
    pods = running(cluster)
    cluster.delete("deploy/web", propagationPolicy=policy)
    cluster.wait("deploy/web", "delete")
    if policy == "Orphan":
        assert "ownerReferences" not in cluster.get(f"rs/{held['metadata']['name']}")["metadata"]
        assert len(running(cluster)) == 2
        return
    for pod in pods:
        cluster.wait(f"pod/{pod['metadata']['name']}", "delete")


def test_replica_set_replaces_deleted_pods_and_adopts_matching_ones(cluster: Cluster) -> None:
    stray = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stray", "labels": dict(LABELS)}}
    cluster.load({**stray, "spec": template()["spec"]})
    cluster.load(workload("ReplicaSet", replicas=2))
    cluster.wait("rs/web", lambda held: held["status"].get("availableReplicas") == 2)
    assert cluster.get("pod/stray")["metadata"]["ownerReferences"][0]["name"] == "web"
    cluster.delete("pod/stray")
    cluster.wait("pod/stray", "delete")
    cluster.wait("rs/web", lambda held: held["status"].get("availableReplicas") == 2)


def test_stateful_set_is_ordered_and_keeps_its_claims(cluster: Cluster) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claims = [{"metadata": {"name": "data"}, "spec": claim}]
    cluster.load(workload("StatefulSet", replicas=3, serviceName="web", volumeClaimTemplates=claims))
    cluster.wait("sts/web", lambda held: held["status"].get("readyReplicas") == 3)
    assert sorted(pod["metadata"]["name"] for pod in cluster.list("pods")) == ["web-0", "web-1", "web-2"]
    cluster.wait("pvc/data-web-2", lambda held: held["status"].get("phase") == "Bound")
    path = "/apis/apps/v1/namespaces/default/statefulsets/web"
    cluster.request("PATCH", path, {"spec": {"template": template("nginx:2")}}, MERGE)
    cluster.wait(
        "sts/web",
        lambda held: (
            held["status"].get("updatedReplicas") == 3
            and held["status"]["currentRevision"] == held["status"]["updateRevision"]
        ),
    )
    assert len(cluster.list("controllerrevisions")) == 2
    cluster.request("PATCH", path, {"spec": {"replicas": 1}}, MERGE)
    cluster.wait("pod/web-1", "delete")
    assert cluster.get("pvc/data-web-2")


def test_daemon_set_runs_on_every_node(cluster: Cluster) -> None:
    cluster.load(workload("DaemonSet"))
    held = cluster.wait("ds/web", lambda held: held["status"].get("numberAvailable") == 1)
    assert held["status"]["desiredNumberScheduled"] == 1
    path = "/apis/apps/v1/namespaces/default/daemonsets/web"
    cluster.request("PATCH", path, {"spec": {"template": template("nginx:2")}}, MERGE)
    cluster.wait(
        "ds/web",
        lambda held: (
            held["status"].get("observedGeneration") == 2
            and held["status"].get("updatedNumberScheduled") == 1
        ),
    )


@pytest.mark.parametrize("mode", ["NonIndexed", "Indexed"])
def test_job_completes(cluster: Cluster, mode: str) -> None:
    spec = {
        "completions": 3,
        "parallelism": 2,
        "completionMode": mode,
        "template": {"spec": {**template()["spec"], "restartPolicy": "Never"}},
    }
    cluster.load({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": spec})
    job = cluster.wait("job/j", "Complete")
    assert job["status"]["succeeded"] == 3
    assert "active" not in job["status"]
    assert job["status"].get("completedIndexes") == ("0-2" if mode == "Indexed" else None)


def test_cron_job_creates_jobs_on_schedule(cluster: Cluster) -> None:
    job = {"template": {"spec": {**template()["spec"], "restartPolicy": "Never"}}}
    spec = {"schedule": "@every 1s", "jobTemplate": {"spec": job}}
    cluster.load({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c"}, "spec": spec})
    held = cluster.wait("cronjob/c", lambda held: held["status"].get("lastSuccessfulTime"))
    assert held["status"]["lastScheduleTime"]


def test_services_get_endpoints_of_ready_pods(cluster: Cluster) -> None:
    ports = [{"name": "web", "port": 80, "targetPort": "http"}]
    spec = {"selector": LABELS, "ports": ports, "type": "LoadBalancer"}
    cluster.load({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": spec})
    cluster.load(workload("Deployment", replicas=2))
    endpoints = cluster.wait(
        "endpoints/web", lambda held: len((held.get("subsets") or [{}])[0].get("addresses", ())) == 2
    )
    assert endpoints["subsets"][0]["ports"] == [{"name": "web", "port": 8080, "protocol": "TCP"}]
    (held,) = (
        s
        for s in cluster.list("endpointslices")
        if s["metadata"]["labels"].get("kubernetes.io/service-name") == "web"
    )
    cluster.wait(f"endpointslice/{held['metadata']['name']}", lambda held: len(held["endpoints"]) == 2)
    assert cluster.get("svc/web")["status"]["loadBalancer"]["ingress"][0]["ip"]


@needs_kubectl
def test_kubectl_rollout_status_completes(cluster: Cluster) -> None:
    kubectl = functools.partial(run_kubectl, cluster)

    kubectl("create", "deployment", "web", "--image=nginx", "--replicas=3")
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/web", "--timeout=20s")
    kubectl("set", "image", "deployment/web", "nginx=nginx:2")
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/web", "--timeout=20s")
    assert "1 " in kubectl("rollout", "history", "deployment/web")
    kubectl("rollout", "undo", "deployment/web")
    kubectl("rollout", "status", "deployment/web", "--timeout=20s")
    kubectl("wait", "--for=condition=Available", "deployment/web", "--timeout=20s")
    kubectl("wait", "--for=condition=Ready", "pod", "-l", "app=web", "--timeout=20s")
    kubectl("delete", "deployment", "web", "--cascade=foreground", "--timeout=20s")
    assert kubectl("get", "pods", "-o", "name") == ""
