"""Empty lists and maps: found where they were sent, put back for rules that ask, never stored."""

from __future__ import annotations

from typing import Any

import pytest

from kubist.schema.catalog import schema_for
from kubist.schema.empties import Empties, dropped
from kubist.schema.strict import decode_body
from live import MERGE, Client

POD = schema_for("", "v1", "Pod")
CONTAINER = {"name": "a", "image": "b"}
Object = dict[str, Any]


def pod(**spec: Any) -> Object:
    return {"metadata": {"name": "p"}, "spec": {"containers": [CONTAINER], **spec}}


def test_decoding_says_that_it_dropped_something() -> None:
    assert decode_body(POD, b'{"spec":{"containers":[{"args":[]}]}}').dropped is not None
    assert decode_body(POD, b'{"spec":{"containers":[{"args":["a"]}],"nodeSelector":null}}').dropped is None


def test_what_is_dropped_has_a_path() -> None:
    value = {"metadata": {"labels": {}}, "spec": {"containers": [{"args": [], "env": [{}]}], "overhead": {}}}
    found = {".".join(map(str, path)) for path in dropped(POD, value)}
    assert found == {"metadata.labels", "spec.containers.0.args", "spec.overhead"}


@pytest.mark.parametrize(("new", "kept"), [(True, {"overhead": {}, "nodeSelector": None}), (False, {})])
def test_only_what_rules_ask_for_is_put_back(new: bool, kept: Object) -> None:
    sent = pod(overhead={}, nodeSelector={})
    obj = pod()
    empties = Empties(POD, sent, new=new)
    empties.put(obj)
    assert {name: obj["spec"].get(name) for name in kept} == kept
    empties.take(obj)
    assert obj == pod()


def test_what_has_been_filled_in_is_left_alone() -> None:
    obj = pod(overhead={"cpu": "1"})
    empties = Empties(POD, pod(overhead={}), new=True)
    empties.put(obj)
    empties.take(obj)
    assert obj == pod(overhead={"cpu": "1"})


def test_an_empty_overhead_is_an_overhead(client: Client, namespace: str) -> None:
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
def test_an_empty_list_where_none_may_be_is_refused(
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
def test_an_ephemeral_container_may_not_even_have_an_empty_list_of_what_is_not_for_it(
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


def test_scaling_rules_need_policies_unless_they_are_left_to_the_server(
    client: Client, namespace: str
) -> None:
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


def test_generation_of_a_policy_counts_what_was_sent_empty(client: Client, namespace: str) -> None:
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


def test_what_can_be_allocated_of_a_node_is_its_capacity_but_not_owned(client: Client) -> None:
    path = "/api/v1/nodes/empties"
    client.post("/api/v1/nodes", {"metadata": {"name": "empties", "labels": {"a": "b"}}})
    sent = {"status": {"capacity": {"cpu": "2"}, "allocatable": {}}}
    node = client.patch(f"{path}/status?fieldManager=kubelet", sent, MERGE)
    assert node["status"]["allocatable"] == {"cpu": "2"}
    (owner,) = [entry for entry in node["metadata"]["managedFields"] if entry["manager"] == "kubelet"]
    assert set(owner["fieldsV1"]["f:status"]) == {"f:capacity"}
    client.delete(path)
