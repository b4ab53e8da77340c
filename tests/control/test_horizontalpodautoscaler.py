"""HorizontalPodAutoscaler controller on a running server whose clock the tests move."""

from __future__ import annotations

from typing import Any

import pytest

from kubist.model.meta.object import Object
from kubist.testing import Cluster
from tests.waiting import wait_for

pytestmark = pytest.mark.kubist(workloads=True)
MERGE = "application/merge-patch+json"
DEPLOYMENT = "/apis/apps/v1/namespaces/default/deployments/web"
AUTOSCALERS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"


def deploy(cluster: Cluster, replicas: int = 2, usage: str = "cpu=50m", **container: Any) -> None:
    """Deployment whose pods request 100m CPU and use as much as the annotation says."""
    labels = {"app": "web"}
    held = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}, **container}
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels, "annotations": {"kubist.io/usage": usage}},
            "spec": {"containers": [held]},
        },
    }
    cluster.load({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})
    ready(cluster, replicas)


def ready(cluster: Cluster, replicas: int) -> None:
    def all_ready(held: Object) -> bool:
        status = held["status"]
        return bool(status.get("readyReplicas", 0) == status.get("replicas", 0) == replicas)

    cluster.wait("deployment/web", all_ready)


def autoscale(cluster: Cluster, name: str = "web", kind: str = "Deployment", **spec: Any) -> None:
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": "web"}
    metric = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
    }
    body = {"scaleTargetRef": reference, "minReplicas": 1, "maxReplicas": 5, "metrics": [metric], **spec}
    made = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "spec": body}
    cluster.request("POST", AUTOSCALERS, made | {"metadata": {"name": name}})


def use(cluster: Cluster, usage: str) -> None:
    """Changes the usage of the running pods."""
    for pod in cluster.list("pods"):
        change = {"metadata": {"annotations": {"kubist.io/usage": usage}}}
        path = f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}"
        cluster.request("PATCH", path, change, MERGE)


def condition(cluster: Cluster, kind: str, reason: str, name: str = "web") -> Object:
    """Condition of the autoscaler, as soon as it has this reason."""
    found: list[Object] = []

    def has_reason() -> bool:
        held = cluster.request("GET", f"{AUTOSCALERS}/{name}")["status"].get("conditions") or ()
        found[:] = [one for one in held if (one["type"], one["reason"]) == (kind, reason)]
        return bool(found)

    wait_for(has_reason)
    return found[0]


def events(cluster: Cluster) -> set[tuple[str, str]]:
    return {
        (event["reason"], event["message"])
        for event in cluster.list("events")
        if event["involvedObject"]["kind"] == "HorizontalPodAutoscaler"
    }


def test_autoscaler_follows_the_usage(cluster: Cluster) -> None:
    deploy(cluster, 2)
    autoscale(cluster)
    condition(cluster, "ScalingActive", "ValidMetricFound")
    use(cluster, "cpu=80m")
    cluster.clock.advance("15s")
    cluster.wait("deployment/web", lambda held: held["spec"]["replicas"] == 4)
    message = "New size: 4; reason: cpu resource utilization (percentage of request) above target"
    wait_for(lambda: ("SuccessfulRescale", message) in events(cluster))
    ready(cluster, 4)
    use(cluster, "cpu=10m")
    cluster.clock.advance("15s")
    condition(cluster, "AbleToScale", "ScaleDownStabilized")
    for _ in range(2):
        cluster.clock.advance("5m")
    cluster.wait("deployment/web", lambda held: held["spec"]["replicas"] == 1)
    message = "New size: 1; reason: All metrics below target"
    wait_for(lambda: ("SuccessfulRescale", message) in events(cluster))
    status = wait_for(lambda: cluster.request("GET", f"{AUTOSCALERS}/web")["status"])
    assert status["lastScaleTime"]
    assert [one["type"] for one in status["conditions"]] == ["AbleToScale", "ScalingActive", "ScalingLimited"]


def test_status_shows_the_metrics(cluster: Cluster) -> None:
    deploy(cluster, 2)
    autoscale(cluster)
    condition(cluster, "ScalingActive", "ValidMetricFound")
    status = cluster.request("GET", f"{AUTOSCALERS}/web")["status"]
    current = {"averageUtilization": 50, "averageValue": "50m"}
    assert status["currentMetrics"] == [{"type": "Resource", "resource": {"name": "cpu", "current": current}}]
    assert (status["currentReplicas"], status["desiredReplicas"]) == (2, 2)
    assert condition(cluster, "AbleToScale", "ReadyForNewScale")["message"] == (
        "recommended size matches current size"
    )


def test_replicas_stay_within_the_bounds(cluster: Cluster) -> None:
    deploy(cluster, 2)
    autoscale(cluster, minReplicas=3)
    cluster.wait("deployment/web", lambda held: held["spec"]["replicas"] == 3)
    message = "New size: 3; reason: Current number of replicas below Spec.MinReplicas"
    wait_for(lambda: ("SuccessfulRescale", message) in events(cluster))
    cluster.request("PATCH", DEPLOYMENT, {"spec": {"replicas": 7}}, MERGE)
    cluster.clock.advance("15s")
    cluster.wait("deployment/web", lambda held: held["spec"]["replicas"] == 5)
    message = "New size: 5; reason: Current number of replicas above Spec.MaxReplicas"
    wait_for(lambda: ("SuccessfulRescale", message) in events(cluster))


def test_autoscaler_is_disabled_at_zero_replicas(cluster: Cluster) -> None:
    deploy(cluster, 0)
    autoscale(cluster)
    found = condition(cluster, "ScalingActive", "ScalingDisabled")
    assert found["status"] == "False"
    assert found["message"] == "scaling is disabled since the replica count of the target is zero"


def test_missing_target_is_reported(cluster: Cluster) -> None:
    autoscale(cluster)
    why = 'deployments.apps "web" not found'
    found = condition(cluster, "AbleToScale", "FailedGetScale")
    assert found["message"] == f"the HPA controller was unable to get the target's current scale: {why}"
    wait_for(lambda: ("FailedGetScale", why) in events(cluster))
    autoscale(cluster, "other", kind="Nothing")
    assert condition(cluster, "AbleToScale", "FailedGetScale", "other")["message"].endswith(
        'no matches for kind "Nothing" in group "apps"'
    )


def test_missing_requests_are_reported(cluster: Cluster) -> None:
    deploy(cluster, 1, resources={})
    autoscale(cluster)
    found = condition(cluster, "ScalingActive", "FailedGetResourceMetric")
    assert found["status"] == "False"
    why = "failed to get cpu utilization: missing request for cpu in container c of Pod web-"
    assert found["message"].startswith(f"the HPA was unable to compute the replica count: {why}")
    wait_for(
        lambda: {"FailedGetResourceMetric", "FailedComputeMetricsReplicas"} <= dict(events(cluster)).keys()
    )
    assert cluster.request("GET", f"{AUTOSCALERS}/web")["status"]["currentMetrics"] == [{"type": ""}]


def test_external_metric_without_an_api_is_reported(cluster: Cluster) -> None:
    deploy(cluster, 1)
    metric = {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "30"}}
    autoscale(cluster, metrics=[{"type": "External", "external": metric}])
    condition(cluster, "ScalingActive", "FailedGetExternalMetric")


def test_two_autoscalers_of_the_same_pods_are_ambiguous(cluster: Cluster) -> None:
    deploy(cluster, 1)
    autoscale(cluster)
    condition(cluster, "ScalingActive", "ValidMetricFound")
    autoscale(cluster, "rival")
    assert condition(cluster, "ScalingActive", "AmbiguousSelector", "rival")["message"] == (
        "pods by selector app=web are controlled by multiple HPAs: [{rival default} {web default}]"
    )


def test_custom_resource_is_scaled_through_its_scale(cluster: Cluster) -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    scale = {
        "specReplicasPath": ".spec.size",
        "statusReplicasPath": ".status.size",
        "labelSelectorPath": ".status.selector",
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"scale": scale, "status": {}},
    }
    names = {"plural": "farms", "singular": "farm", "kind": "Farm"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    cluster.load(crd | {"metadata": {"name": "farms.example.com"}, "spec": spec})
    cluster.load(
        {"apiVersion": "example.com/v1", "kind": "Farm", "metadata": {"name": "f"}, "spec": {"size": 1}}
    )
    path = "/apis/example.com/v1/namespaces/default/farms/f"
    cluster.request("PATCH", f"{path}/status", {"status": {"selector": "app=web", "size": 1}}, MERGE)
    target = {"apiVersion": "example.com/v1", "kind": "Farm", "name": "f"}
    autoscale(cluster, scaleTargetRef=target, minReplicas=3)
    wait_for(lambda: cluster.request("GET", path)["spec"]["size"] == 3)
