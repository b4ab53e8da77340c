"""Differences between kinds in the verbs: names and metadata, bookmarks, selectable fields, owners."""

from __future__ import annotations

from typing import Any

import pytest

from kubist.model.meta.object import Object
from tests.live import MERGE, Live

DEFAULT = "namespaces/default"
LISTS: list[tuple[str, Object, list[str]]] = [
    (f"/apis/rbac.authorization.k8s.io/v1/{DEFAULT}/roles", {"rules": []}, ["f:rules"]),
    (
        f"/apis/discovery.k8s.io/v1/{DEFAULT}/endpointslices",
        {"addressType": "IPv4", "endpoints": [], "ports": []},
        ["f:addressType", "f:endpoints", "f:ports"],
    ),
    (f"/apis/rbac.authorization.k8s.io/v1/{DEFAULT}/roles", {"rules": None}, []),
    (f"/api/v1/{DEFAULT}/serviceaccounts", {"secrets": []}, []),
]


def owned(obj: Object) -> dict[str, list[str]]:
    managers = obj["metadata"].get("managedFields") or []
    return {entry["manager"]: sorted(entry["fieldsV1"]) for entry in managers}


@pytest.mark.parametrize(("path", "sent", "fields"), LISTS)
def test_manager_of_an_empty_list_owns_it_if_it_is_always_serialized(
    live: Live, path: str, sent: Object, fields: list[str]
) -> None:
    made = live.client.post(f"{path}?fieldManager=me", {"metadata": {"name": "x"}, **sent})
    assert owned(made) == ({"me": fields} if fields else {})
    assert not any(made.get(name) for name in sent if name != "addressType")


def test_an_empty_list_in_a_patch_changes_its_owner(live: Live) -> None:
    path = f"/apis/rbac.authorization.k8s.io/v1/{DEFAULT}/roles"
    live.client.post(f"{path}?fieldManager=a", {"metadata": {"name": "x"}, "rules": []})
    patched = live.client.patch(f"{path}/x?fieldManager=b", {"rules": []})
    assert owned(patched) == {"b": ["f:rules"]}
    assert patched["rules"] is None


BOOKMARKS: list[tuple[str, Object, Object]] = [
    ("deployments", {"replicas": 0}, {}),
    ("replicasets", {"replicas": 0}, {}),
    ("statefulsets", {"replicas": 0}, {}),
    ("daemonsets", {}, {"deprecated.daemonset.template.generation": "0"}),
]


@pytest.mark.parametrize(("resource", "spec", "annotations"), BOOKMARKS)
def test_a_bookmark_of_a_workload_shows_its_zeros(
    live: Live, resource: str, spec: Object, annotations: Object
) -> None:
    with live.client.watch(f"/apis/apps/v1/{DEFAULT}/{resource}?allowWatchBookmarks=1") as watch:
        bookmark = next(iter(watch))["object"]
    assert bookmark["spec"].get("replicas") == spec.get("replicas")
    assert bookmark["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"} | annotations


METADATA: list[tuple[str, Object, Object, list[str]]] = [
    ("/apis/policy/v1/namespaces/default/poddisruptionbudgets", {"finalizers": ["plain"]}, {"spec": {}}, []),
    ("/apis/node.k8s.io/v1/runtimeclasses", {"finalizers": ["plain"]}, {"handler": "h"}, []),
    (
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
        {"finalizers": ["plain"]},
        {"spec": {"policyName": "p", "validationActions": ["Warn"]}},
        [],
    ),
    (
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        {"finalizers": ["plain"]},
        {"value": 1},
        ["finalizers[0]"],
    ),
    ("/apis/resource.k8s.io/v1/deviceclasses", {"generateName": "B_"}, {"spec": {}}, ["name"]),
    (
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        {"generateName": "B_"},
        {"value": 1},
        ["generateName", "name"],
    ),
]


@pytest.mark.parametrize(("path", "metadata", "rest", "wrong"), METADATA)
def test_kinds_differ_in_the_metadata_that_they_accept(
    live: Live, path: str, metadata: Object, rest: Object, wrong: list[str]
) -> None:
    named = metadata if "generateName" in metadata else {"name": "x", **metadata}
    answer = live.client.ask("POST", path, {"metadata": named, **rest}).json
    causes: list[Any] = (answer.get("details") or {}).get("causes") or []
    assert sorted(cause["field"] for cause in causes) == [f"metadata.{field}" for field in wrong]


def test_resource_slices_cannot_be_selected_by_namespace(live: Live) -> None:
    path = "/apis/resource.k8s.io/v1/resourceslices?fieldSelector=metadata.namespace%3Dx"
    answer = live.client.ask("GET", path)
    assert (answer.status, answer.json["reason"]) == (400, "BadRequest")


def test_the_old_autoscaler_carries_current_metrics_in_an_annotation_that_is_owned(live: Live) -> None:
    path = f"/apis/autoscaling/v1/{DEFAULT}/horizontalpodautoscalers"
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    live.client.post(path, {"metadata": {"name": "h"}, "spec": {"scaleTargetRef": target, "maxReplicas": 2}})
    use = {"status": {"currentReplicas": 1, "desiredReplicas": 1, "currentCPUUtilizationPercentage": 9}}
    answer = live.client.patch(f"{path}/h/status?fieldManager=me", use)
    carried = "autoscaling.alpha.kubernetes.io/current-metrics"
    entry = next(entry for entry in answer["metadata"]["managedFields"] if entry["manager"] == "me")
    assert f"f:{carried}" in entry["fieldsV1"]["f:metadata"]["f:annotations"]
    assert '"currentAverageUtilization":9' in answer["metadata"]["annotations"][carried]


def test_status_with_negative_replicas_is_rejected(live: Live) -> None:
    sets = "/apis/apps/v1/namespaces/default/replicasets"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    live.client.post(sets, {"metadata": {"name": "r"}, "spec": spec})
    answer = live.client.ask(
        "PUT", f"{sets}/r/status", {"metadata": {"name": "r"}, "status": {"replicas": -1}}
    )
    assert answer.status == 422, answer
    assert len(answer.json["details"]["causes"]) == 4


STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"
NUMBERS: list[tuple[str, Any, int, int | None]] = [
    (STRATEGIC, (1 << 32) + 3, 200, 3),
    (STRATEGIC, 1 << 31, 422, None),
    (STRATEGIC, 2.0, 200, 2),
    (STRATEGIC, 2.5, 422, None),
    (STRATEGIC, "2", 422, None),
    (APPLY, (1 << 32) + 3, 200, 3),
    (APPLY, 2.0, 200, 2),
    (APPLY, 2.5, 500, None),
    (MERGE, (1 << 32) + 3, 422, None),
    (MERGE, 2.0, 422, None),
]


def deployment(name: str) -> Object:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    return {
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
    }


@pytest.mark.parametrize(("how", "number", "status", "replicas"), NUMBERS)
def test_some_patches_truncate_integers_to_the_field_size(
    live: Live, how: str, number: Any, status: int, replicas: int | None
) -> None:
    path = "/apis/apps/v1/namespaces/default/deployments"
    live.client.post(path, deployment("d"))
    patch = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": number}}
    query = "?fieldManager=me&force=true" if how == APPLY else ""
    answer = live.client.ask("PATCH", f"{path}/d{query}", patch, how)
    assert answer.status == status, answer
    assert replicas is None or answer.json["spec"]["replicas"] == replicas


def test_a_job_keeps_the_labels_of_its_pods_when_its_status_is_written(live: Live) -> None:
    path = "/apis/batch/v1/namespaces/default/jobs"
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    made = live.client.post(path, {"metadata": {"name": "j"}, "spec": {"template": template}})
    written = live.client.put(f"{path}/j/status", {"metadata": {"name": "j"}, "status": {}})
    assert written["metadata"]["labels"] == made["metadata"]["labels"]


def test_event_written_through_another_group_loses_the_owners_of_the_first(live: Live) -> None:
    involved = {"kind": "Pod", "name": "p", "namespace": "default"}
    event = {"metadata": {"name": "e"}, "involvedObject": involved, "reason": "r", "type": "Normal"}
    live.client.post("/api/v1/namespaces/default/events?fieldManager=a", event)
    path = "/apis/events.k8s.io/v1/namespaces/default/events/e?fieldManager=b"
    assert list(owned(live.client.patch(path, {"metadata": {"labels": {"x": "y"}}}))) == ["b"]


def test_budget_spec_is_validated_before_metadata(live: Live) -> None:
    path = f"/apis/policy/v1/{DEFAULT}/poddisruptionbudgets"
    odd = {"name": "Any_Name", "labels": {"a b": "c"}}
    refused = live.client.ask("POST", path, {"metadata": odd, "spec": {"minAvailable": -1}}).json
    assert [cause["field"] for cause in refused["details"]["causes"]] == ["spec.minAvailable"]
    refused = live.client.ask("POST", path, {"metadata": odd, "spec": {}}).json
    assert [cause["field"] for cause in refused["details"]["causes"]] == ["metadata.labels"]
    assert live.client.post(path, {"metadata": {"name": "Any_Name"}})["metadata"]["name"] == "Any_Name"


@pytest.mark.parametrize(
    ("version", "code"), [("5", 500), ("0", 201), ("abc", 201), ("99999999999999999999", 201)]
)
def test_object_with_a_resource_version_cannot_be_created(live: Live, version: str, code: int) -> None:
    path = f"/api/v1/{DEFAULT}/configmaps"
    stale = {"metadata": {"name": "x", "resourceVersion": version}}
    assert live.client.ask("POST", f"{path}?dryRun=All", stale).json["metadata"]["resourceVersion"] == version
    assert live.client.ask("POST", path, stale).status == code


def test_null_is_a_body_without_options(live: Live) -> None:
    path = f"/api/v1/{DEFAULT}/configmaps"
    live.client.post(path, {"metadata": {"name": "x"}})
    assert live.client.ask("DELETE", f"{path}/x?dryRun=All", b"null").status == 200
    assert live.client.ask("GET", f"{path}/x").status == 404


SCALES: list[tuple[Object, int]] = [
    ({"labels": {"a b": "c"}}, 422),
    ({"finalizers": ["nodomain"]}, 422),
    ({"uid": "another"}, 409),
    ({"labels": {"a": "b"}}, 200),
]


@pytest.mark.parametrize(("metadata", "code"), SCALES)
def test_a_scale_is_held_to_the_rules_of_objects(live: Live, metadata: Object, code: int) -> None:
    path = f"/apis/apps/v1/{DEFAULT}/replicasets"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    live.client.post(path, {"metadata": {"name": "x"}, "spec": spec})
    change = {"metadata": metadata, "spec": {"replicas": 3}}
    assert live.client.ask("PATCH", f"{path}/x/scale", change, MERGE).status == code
    assert live.client.get(f"{path}/x")["spec"]["replicas"] == (3 if code == 200 else 1)


def test_claim_spec_is_validated_before_its_name(live: Live) -> None:
    path = f"/apis/resource.k8s.io/v1/{DEFAULT}/resourceclaims"
    wanted = {"name": "r", "exactly": {"deviceClassName": "c", "adminAccess": True}}
    claim = {"metadata": {"name": "Bad_Name"}, "spec": {"devices": {"requests": [wanted]}}}
    causes = live.client.ask("POST", path, claim).json["details"]["causes"]
    fields = [cause["field"] for cause in causes]
    assert fields == ["spec.devices.requests[0].adminAccess", "metadata.name"]


def test_token_review_keeps_the_fields_that_it_does_not_set(live: Live) -> None:
    review = {"spec": {"token": "none"}, "status": {"authenticated": True, "user": {"username": "u"}}}
    answer = live.client.ask("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review).json["status"]
    assert answer["user"] == {"username": "u"} and "authenticated" not in answer
    assert answer["error"] == "invalid bearer token"


@pytest.mark.parametrize("version", ["None", "-1", "99999999999999999999"])
@pytest.mark.parametrize("exists", [True, False])
def test_malformed_resource_version_is_rejected_by_every_put(live: Live, version: str, exists: bool) -> None:
    path = f"/apis/coordination.k8s.io/v1/{DEFAULT}/leases"
    if exists:
        live.client.post(path, {"metadata": {"name": "x"}, "spec": {}})
    lease = {"metadata": {"name": "x", "resourceVersion": version}, "spec": {}}
    assert live.client.ask("PUT", f"{path}/x", lease).status == 500


def test_applying_the_status_of_an_absent_policy_makes_it_and_of_other_kinds_does_not(live: Live) -> None:
    group = "admissionregistration.k8s.io/v1"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}
    policy: Object = {
        "apiVersion": group,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "p"},
        "status": {"observedGeneration": 1},
    }
    path = f"/apis/{group}/validatingadmissionpolicies/p/status?fieldManager=me"
    assert live.client.ask("PATCH", path, policy, APPLY).status == 422
    policy["spec"] = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "true"}],
    }
    made = live.client.ask("PATCH", path, policy, APPLY)
    assert made.status == 201 and made.json["status"] == {}, made
    assert owned(made.json) == {"me": ["f:status"]}
    assert live.client.ask("PATCH", path, policy, APPLY).json["status"] == {"observedGeneration": 1}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"phase": "Running"}}
    assert live.client.ask("PATCH", "/api/v1/nodes/n/status?fieldManager=me", node, APPLY).status == 404


def test_writing_the_status_of_an_absent_service_makes_it_but_gives_it_no_addresses(live: Live) -> None:
    path = f"/api/v1/{DEFAULT}/services/made-by-status/status?fieldManager=me"
    spec: Object = {"selector": {"a": "b"}, "ports": [{"port": 80}], "clusterIP": "None"}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "made-by-status"},
        "spec": spec,
    }
    for method, content_type in (("PUT", "application/json"), ("PATCH", APPLY)):
        refused = live.client.ask(method, path, service, content_type)
        assert refused.status == 422, refused
        assert [cause["field"] for cause in refused.json["details"]["causes"]] == ["spec.clusterIPs"]
    assert live.client.ask("PATCH", path, {"status": {}}, MERGE).status == 404
    spec["clusterIPs"] = ["None"]
    made = live.client.ask("PUT", path, service)
    assert made.status == 201 and "ipFamilies" not in made.json["spec"], made
