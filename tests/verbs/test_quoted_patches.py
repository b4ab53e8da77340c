"""Refused patches quote the patched object in the order of its text."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.live import MERGE, Client

JSON_PATCH = "application/json-patch+json"
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
DEPLOYMENT = {
    "metadata": {"name": "d"},
    "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE},
}


@pytest.fixture
def deployment(client: Client, namespace: str) -> str:
    where = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    client.post(where, DEPLOYMENT)
    return f"{where}/d"


def quoted(answer: Any) -> dict[str, Any]:
    assert answer.status == 422, answer
    found = re.match(r' "" is invalid: patch: Invalid value: ("(?:[^"\\]|\\.)*"): ', answer.json["message"])
    assert found is not None, answer
    document: dict[str, Any] = json.loads(json.loads(found[1]))
    return document


def test_untouched_parts_keep_the_declared_order(client: Client, deployment: str) -> None:
    patch = [{"op": "replace", "path": "/spec/replicas", "value": "x"}]
    shown = quoted(client.ask("PATCH", deployment, patch, JSON_PATCH))
    assert list(shown) == ["apiVersion", "kind", "metadata", "spec", "status"]
    metadata = [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "managedFields",
    ]
    assert list(shown["metadata"]) == metadata
    assert list(shown["spec"]) == sorted(shown["spec"])
    container = ["name", "image", "resources", "terminationMessagePath", "terminationMessagePolicy"]
    assert list(shown["spec"]["template"]["spec"]["containers"][0]) == [*container, "imagePullPolicy"]


def test_values_of_operations_keep_their_order(client: Client, deployment: str) -> None:
    value = {"spec": {"restartPolicy": 1, "containers": []}, "metadata": {}}
    patch = [{"op": "replace", "path": "/spec/template", "value": value}]
    shown = quoted(client.ask("PATCH", deployment, patch, JSON_PATCH))
    assert list(shown["spec"]["template"]) == ["spec", "metadata"]


def test_merged_parts_are_sorted(client: Client, deployment: str) -> None:
    patch = {"spec": {"replicas": "x", "paused": True, "strategy": {"type": "Recreate", "rollingUpdate": {}}}}
    shown = quoted(client.ask("PATCH", deployment, patch, MERGE))
    assert list(shown["spec"]) == sorted(shown["spec"])
    assert list(shown["spec"]["strategy"]) == ["rollingUpdate", "type"]


def test_objects_that_were_read_are_sorted(client: Client, deployment: str) -> None:
    patch = [
        {"op": "test", "path": "/metadata/name", "value": "d"},
        {"op": "replace", "path": "/spec/replicas", "value": "x"},
    ]
    shown = quoted(client.ask("PATCH", deployment, patch, JSON_PATCH))
    assert list(shown["metadata"]) == sorted(shown["metadata"])


def test_a_scale_shows_its_owners(client: Client, deployment: str) -> None:
    client.patch(f"{deployment}/scale", {"spec": {"replicas": 2}}, MERGE)
    shown = quoted(client.ask("PATCH", f"{deployment}/scale", {"spec": {"replicas": "x"}}, MERGE))
    assert list(shown["metadata"])[-2:] == ["creationTimestamp", "managedFields"]
    assert [entry["fieldsV1"] for entry in shown["metadata"]["managedFields"]] == [
        {"f:spec": {"f:replicas": {}}}
    ]


def test_patch_of_the_kind_reports_the_unregistered_kind(client: Client, deployment: str) -> None:
    answer = client.ask("PATCH", deployment, {"apiVersion": "other.example.com/v1"}, MERGE)
    assert answer.status == 422
    assert (
        '}": no kind "Deployment" is registered for version "other.example.com/v1"' in answer.json["message"]
    )


def test_numbers_and_repeated_keys_keep_their_text(client: Client, deployment: str) -> None:
    patch = b'[{"op":"add","path":"/spec/selector","value":{"matchLabels":{"a":1.0,"a":1e3}}}]'
    answer = client.ask("PATCH", deployment, patch, JSON_PATCH)
    assert answer.status == 422
    assert r"\"selector\":{\"matchLabels\":{\"a\":1.0,\"a\":1e3}}" in answer.json["message"]


def test_copied_numbers_can_be_quoted(client: Client, deployment: str) -> None:
    patch = b'[{"op":"add","path":"/spec/replicas","value":1.5},{"op":"copy","from":"/spec/replicas","path":"/kind"}]'
    answer = client.ask("PATCH", deployment, patch, JSON_PATCH)
    assert answer.status == 422, answer
    assert r"\"kind\":1.5," in answer.json["message"]
