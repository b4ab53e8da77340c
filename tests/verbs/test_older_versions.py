"""Patches that replace the apiVersion with another one that is known, served or not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.live import MERGE, Client

JSON_PATCH = "application/json-patch+json"
LABELS = {"a": "b"}
DEPLOYMENT: dict[str, Any] = {
    "metadata": {"name": "d"},
    "spec": {
        "replicas": 0,
        "selector": {"matchLabels": LABELS},
        "template": {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    },
}
SCALER: dict[str, Any] = {
    "metadata": {"name": "h"},
    "spec": {
        "maxReplicas": 3,
        "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"},
        "metrics": [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
            }
        ],
    },
}


def patches(api_version: str) -> list[tuple[Any, str]]:
    return [
        ([{"op": "replace", "path": "/apiVersion", "value": api_version}], JSON_PATCH),
        ({"apiVersion": api_version, "metadata": {"annotations": {"patched": "yes"}}}, MERGE),
    ]


@pytest.mark.parametrize("api_version", ["apps/v1beta1", "apps/v1beta2", "extensions/v1beta1"])
def test_patch_may_name_an_older_version(client: Client, namespace: str, api_version: str) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    client.post(path, DEPLOYMENT)
    for patch, content_type in patches(api_version):
        assert client.patch(f"{path}/d", patch, content_type)["apiVersion"] == "apps/v1"
    stored = client.get(f"{path}/d")
    assert stored["metadata"]["annotations"] == {"patched": "yes"}
    assert stored["spec"]["selector"] == {"matchLabels": LABELS}


@pytest.mark.parametrize("api_version", ["apps/v2", "batch/v1", "v1", "apps/v1/x"])
def test_patch_may_not_name_an_unknown_version(client: Client, namespace: str, api_version: str) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    client.post(path, DEPLOYMENT)
    for patch, content_type in patches(api_version):
        assert client.ask("PATCH", f"{path}/d", patch, content_type).status == 422


def test_patch_is_read_in_the_served_version_that_it_names(client: Client, namespace: str) -> None:
    path = f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers"
    client.post(path, SCALER)
    patch = [
        {"op": "replace", "path": "/apiVersion", "value": "autoscaling/v1"},
        {"op": "add", "path": "/spec/targetCPUUtilizationPercentage", "value": 70},
    ]
    patched = client.patch(f"{path}/h", patch, JSON_PATCH)
    assert patched["apiVersion"] == "autoscaling/v2"
    assert [metric["resource"]["target"] for metric in patched["spec"]["metrics"]] == [
        {"type": "Utilization", "averageUtilization": 70}
    ]


def test_event_of_one_group_may_be_patched_in_the_other(client: Client, namespace: str) -> None:
    """Fields that the named version calls otherwise are unknown to it, and so they go."""
    path, name = "/api/v1/namespaces/default/events", namespace
    client.post(path, {"metadata": {"name": name}, "involvedObject": {"kind": "Pod", "name": "p"}})
    for patch, content_type in patches("events.k8s.io/v1beta1"):
        patched = client.patch(f"{path}/{name}", patch, content_type)
        assert (patched["apiVersion"], patched["involvedObject"]) == ("v1", {})


def test_body_of_an_older_version_does_not_match(client: Client, namespace: str) -> None:
    body = {"apiVersion": "apps/v1beta1", "kind": "Deployment", **DEPLOYMENT}
    answer = client.ask("POST", f"/apis/apps/v1/namespaces/{namespace}/deployments", body)
    assert answer.status == 400
    assert answer.json["message"] == (
        "the API version in the data (apps/v1beta1) does not match the expected API version (apps/v1)"
    )
