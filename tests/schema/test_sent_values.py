"""Empty lists and maps: detected in the body, visible to validation rules, never stored."""

from __future__ import annotations

from typing import Any

import pytest

from kubist.model.meta.object import Object
from kubist.model.schema.catalog import schema_for
from kubist.model.schema.sent_values import dropped
from kubist.model.schema.strict import decode_body
from tests.live import MERGE, Client

POD = schema_for("", "v1", "Pod")
CONTAINER = {"name": "a", "image": "b"}


def pod(**spec: Any) -> Object:
    return {"metadata": {"name": "p"}, "spec": {"containers": [CONTAINER], **spec}}


def test_decoding_flags_dropped_empty_values() -> None:
    assert decode_body(POD, b'{"spec":{"containers":[{"args":[]}]}}').dropped is not None
    assert decode_body(POD, b'{"spec":{"containers":[{"args":["a"]}],"nodeSelector":null}}').dropped is None


def test_dropped_empty_values_have_paths() -> None:
    value = {"metadata": {"labels": {}}, "spec": {"containers": [{"args": [], "env": [{}]}], "overhead": {}}}
    found = {".".join(map(str, path)) for path in dropped(POD, value)}
    assert found == {"metadata.labels", "spec.containers.0.args", "spec.overhead"}


def test_empty_overhead_counts_as_set(client: Client, namespace: str) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    assert client.ask("POST", pods, pod(overhead={})).status == 403
    client.post(pods, pod(nodeSelector={}, tolerations=[]))
    assert "overhead" not in client.patch(f"{pods}/p", {"spec": {"overhead": {}}}, MERGE)["spec"]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"resources": {"claims": []}}, "spec.resources.claims"),
        (
            {"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {
                "metadata": {"finalizers": []},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            }}}]},
            "spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.finalizers",
        ),
    ],
)  # fmt: skip
def test_empty_list_in_a_forbidden_field_is_rejected(
    client: Client, namespace: str, spec: Object, field: str
) -> None:
    answer = client.ask("POST", f"/api/v1/namespaces/{namespace}/pods", pod(**spec))
    assert answer.status == 422, answer
    assert [cause["field"] for cause in answer.json["details"]["causes"]] == [field]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"ports": []}, "ports"),
        ({"resizePolicy": []}, "resizePolicy"),
        ({"restartPolicyRules": []}, "restartPolicyRules"),
        ({"resources": {"limits": {}}}, "resources"),
        ({"resources": {}, "env": [], "volumeMounts": []}, ""),
    ],
)
def test_empty_list_in_a_forbidden_ephemeral_container_field_is_rejected(
    client: Client, namespace: str, given: Object, field: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods"
    client.post(path, pod())
    sent = {"spec": {"ephemeralContainers": [{"name": "e", "image": "b", **given}]}}
    answer = client.ask("PATCH", f"{path}/p/ephemeralcontainers", sent, content_type=MERGE)
    if not field:
        assert answer.status == 200, answer
        return
    assert answer.status == 422, answer
    assert [cause["field"] for cause in answer.json["details"]["causes"]] == [
        f"spec.ephemeralContainers[0].{field}"
    ]


def test_empty_scaling_policies_are_rejected_unless_absent(client: Client, namespace: str) -> None:
    path = f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers"
    spec: Object = {
        "maxReplicas": 3,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"},
    }
    spec["behavior"] = {"scaleUp": {"policies": []}}
    assert client.ask("POST", path, {"metadata": {"name": "a"}, "spec": spec}).status == 422
    spec["behavior"] = {"scaleUp": {}}
    made = client.post(path, {"metadata": {"name": "a"}, "spec": spec})
    assert len(made["spec"]["behavior"]["scaleUp"]["policies"]) == 2


def test_generation_counts_sent_empty_fields_like_the_reference(client: Client, namespace: str) -> None:
    path = f"/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies"
    policy: Object = {"metadata": {"name": "n"}, "spec": {"podSelector": {}}}
    client.post(path, policy)
    policy["spec"] = {"podSelector": {}, "policyTypes": []}
    assert client.put(f"{path}/n", policy)["metadata"]["generation"] == 1
    policy["spec"] = {"podSelector": {"matchLabels": {}}}
    changed = client.put(f"{path}/n", policy)
    assert (changed["metadata"]["generation"], changed["spec"]["podSelector"]) == (2, {})
    deployments = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    template: Object = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER]}}
    made: Object = {
        "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
    }
    client.post(deployments, made)
    template["spec"] |= {"nodeSelector": {}, "overhead": {}}
    assert client.put(f"{deployments}/d", made)["metadata"]["generation"] == 1


def test_node_allocatable_defaults_to_capacity_without_an_owner(client: Client) -> None:
    path = "/api/v1/nodes/empties"
    client.post("/api/v1/nodes", {"metadata": {"name": "empties", "labels": {"a": "b"}}})
    sent = {"status": {"capacity": {"cpu": "2"}, "allocatable": {}}}
    node = client.patch(f"{path}/status?fieldManager=kubelet", sent, MERGE)
    assert node["status"]["allocatable"] == {"cpu": "2"}
    (owner,) = [entry for entry in node["metadata"]["managedFields"] if entry["manager"] == "kubelet"]
    assert set(owner["fieldsV1"]["f:status"]) == {"f:capacity"}
    client.delete(path)
