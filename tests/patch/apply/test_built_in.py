"""Server-side apply on built-in kinds: creators, versions, client-side apply annotation, scale."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubist.model.patch.apply import apply, update_managed_fields
from kubist.model.patch.apply.scale import to_parent, to_scale
from kubist.model.patch.errors import ApplyConflict, UnclassifiedError
from kubist.model.schema.catalog import schema_for
from kubist.model.schema.decode import decode
from kubist.model.schema.node import Schema

from ..tables import table

NOW = "2026-01-01T00:00:00Z"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def kind_of(obj: dict[str, Any]) -> Schema:
    group, _, version = obj["apiVersion"].rpartition("/")
    return schema_for(group, version, obj["kind"])


@pytest.mark.parametrize("case", table("created"))
def test_create_owns_its_fields(case: dict[str, Any]) -> None:
    sent = case["object"]
    new = decode(kind_of(sent), sent)
    options: dict[str, Any] = {"manager": "m", "api_version": sent["apiVersion"], "now": NOW}
    update_managed_fields(kind_of(sent), None, new, reset_fields=("status",), **options)
    assert new["metadata"]["managedFields"][0]["fieldsV1"] == case["owned"]
    assert list(all_keys(new["metadata"]["managedFields"][0]["fieldsV1"])) == list(all_keys(case["owned"]))


def all_keys(node: dict[str, Any]) -> Any:
    for key, inner in node.items():
        yield key
        yield from all_keys(inner)


def deployment(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def test_defaulted_list_key_is_part_of_the_path() -> None:
    config = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s"},
        "spec": {"ports": [{"port": 80, "name": "web"}]},
    }
    made = apply(schema_for("", "v1", "Service"), None, config, manager="m", api_version="v1", now=NOW)
    assert made["metadata"]["managedFields"][0]["fieldsV1"] == {
        "f:spec": {"f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:name": {}, "f:port": {}}}}
    }


def test_apply_of_an_unknown_field_names_its_path() -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm", "colour": "red"}}
    with pytest.raises(UnclassifiedError) as refused:
        apply(schema_for("", "v1", "ConfigMap"), None, config, manager="m", api_version="v1", now=NOW)
    assert refused.value.code == 500
    assert refused.value.message == (
        "failed to create typed patch object (/cm; /v1, Kind=ConfigMap): "
        ".metadata.colour: field not declared in schema"
    )


# ── versions ──


def convert(obj: dict[str, Any], api_version: str) -> tuple[dict[str, Any], Schema] | None:
    """Converts between versions of a HorizontalPodAutoscaler, as far as these tests need."""
    if api_version not in ("autoscaling/v1", "autoscaling/v2"):
        return None
    schema = schema_for("autoscaling", api_version.partition("/")[2], "HorizontalPodAutoscaler")
    if obj["apiVersion"] == api_version:
        return obj, schema
    converted = {**obj, "apiVersion": api_version}
    spec = converted["spec"]
    if api_version == "autoscaling/v1" and "metrics" in spec:
        resource = spec.pop("metrics")[0]["resource"]
        spec["targetCPUUtilizationPercentage"] = resource["target"]["averageUtilization"]
    elif "targetCPUUtilizationPercentage" in spec:
        target = {"type": "Utilization", "averageUtilization": spec.pop("targetCPUUtilizationPercentage")}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    return converted, schema


def autoscaler(version: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"autoscaling/{version}",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "h"},
        "spec": spec,
    }


def applied_in(version: str, live: Any, manager: str, **spec: Any) -> dict[str, Any]:
    config = autoscaler(version, **spec)
    options = {"manager": manager, "api_version": config["apiVersion"], "now": NOW, "convert": convert}
    return apply(kind_of(config), live, config, **options)


def in_version(obj: dict[str, Any], version: str) -> dict[str, Any]:
    converted = convert(obj, f"autoscaling/{version}")
    assert converted is not None
    return converted[0]


def test_conflicts_are_found_in_the_version_of_the_owner() -> None:
    made = applied_in("v1", None, "one", maxReplicas=3, targetCPUUtilizationPercentage=50)
    with pytest.raises(ApplyConflict) as refused:
        applied_in("v2", in_version(made, "v2"), "two", maxReplicas=4)
    assert [cause["field"] for cause in refused.value.causes] == [".spec.maxReplicas"]


def test_field_given_up_in_another_version_is_removed() -> None:
    made = applied_in("v1", None, "one", maxReplicas=3, targetCPUUtilizationPercentage=50)
    made = applied_in("v2", in_version(made, "v2"), "one", maxReplicas=3)
    assert "metrics" not in made["spec"]
    assert [entry["apiVersion"] for entry in made["metadata"]["managedFields"]] == ["autoscaling/v2"]


# ── client-side apply ──


def client_side(config: dict[str, Any]) -> dict[str, Any]:
    annotated = json.loads(json.dumps(config))
    annotated["metadata"]["annotations"] = {LAST_APPLIED: json.dumps(config) + "\n"}
    new: dict[str, Any] = decode(kind_of(config), annotated)
    update_managed_fields(
        kind_of(config),
        None,
        new,
        manager="kubectl-client-side-apply",
        api_version=config["apiVersion"],
        now=NOW,
    )
    return new


def test_kubectl_takes_over_fields_of_client_side_apply() -> None:
    live = client_side(deployment(replicas=1))
    options: dict[str, Any] = {"api_version": "apps/v1", "now": NOW}
    with pytest.raises(ApplyConflict):
        apply(kind_of(live), live, deployment(replicas=2), manager="other", **options)
    made = apply(kind_of(live), live, deployment(replicas=2), manager="kubectl", **options)
    assert made["spec"]["replicas"] == 2
    assert json.loads(made["metadata"]["annotations"][LAST_APPLIED]) == deployment(replicas=2)
    assert made["metadata"]["annotations"][LAST_APPLIED].endswith("}\n")


def test_kubectl_does_not_take_over_fields_changed_by_others() -> None:
    live = client_side(deployment(replicas=1, paused=True))
    live["spec"]["replicas"] = 5
    with pytest.raises(ApplyConflict) as refused:
        apply(
            kind_of(live),
            live,
            deployment(replicas=2, paused=False),
            manager="kubectl",
            api_version="apps/v1",
            now=NOW,
        )
    assert [cause["field"] for cause in refused.value.causes] == [".spec.replicas"]


# ── scale ──

PATHS = {"apps/v1": "spec.replicas"}


def entry(manager: str, fields: Any, **changes: Any) -> dict[str, Any]:
    made = {"manager": manager, "operation": "Apply", "apiVersion": "apps/v1", "time": NOW}
    return {**made, "fieldsType": "FieldsV1", "fieldsV1": fields, **changes}


def test_a_scale_has_the_owners_of_the_replicas() -> None:
    parent = [entry("a", {"f:spec": {"f:paused": {}}}), entry("b", {"f:spec": {"f:replicas": {}}})]
    assert to_scale(parent, PATHS) == [
        entry("b", {"f:spec": {"f:replicas": {}}}, apiVersion="autoscaling/v1")
    ]


def test_owners_of_a_scale_take_the_replicas_of_the_object() -> None:
    parent = [
        entry("a", {"f:spec": {"f:paused": {}, "f:replicas": {}}}),
        entry("b", {"f:spec": {"f:replicas": {}}}),
    ]
    scale = [
        entry("b", {"f:spec": {"f:replicas": {}}}, apiVersion="autoscaling/v1"),
        entry(
            "c",
            {"f:spec": {"f:replicas": {}}},
            apiVersion="autoscaling/v1",
            operation="Update",
            subresource="scale",
        ),
    ]
    taken = entry("c", {"f:spec": {"f:replicas": {}}}, operation="Update", subresource="scale")
    del taken["time"]
    assert to_parent(parent, scale, "apps/v1", PATHS) == [
        entry("a", {"f:spec": {"f:paused": {}}}),
        parent[1],
        taken,
    ]
