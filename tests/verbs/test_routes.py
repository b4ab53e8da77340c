"""Paths and methods that a resource has beyond the usual ones, and those that it lacks."""

from __future__ import annotations

import pytest

from tests.live import Client

WITHOUT_WATCH = [
    "/api/v1/watch/componentstatuses",
    "/api/v1/watch/componentstatuses/etcd-0",
    "/api/v1/watch/namespaces/default/bindings",
    "/api/v1/watch/namespaces/default/status",
    "/api/v1/watch/namespaces/default/pods/p/log",
    "/api/v1/watch/namespaces/default/services/s/proxy/",
    "/apis/apps/v1/watch/namespaces/default/deployments/d/scale",
    "/apis/apps/v1/watch/namespaces/default/deployments/d/status",
    "/apis/authorization.k8s.io/v1/watch/subjectaccessreviews",
]


@pytest.mark.parametrize("path", WITHOUT_WATCH)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_watch_paths_exist_only_for_kinds_with_watch(client: Client, method: str, path: str) -> None:
    answer = client.ask(method, path)
    assert answer.status == 404, answer
    assert answer.json["message"] == "the server could not find the requested resource"


def test_path_that_names_no_resource_is_quoted_with_its_query(client: Client) -> None:
    answer = client.ask("GET", "/api/v1/watch?timeoutSeconds=1")
    assert answer.status == 500
    assert answer.body.count(b"/api/v1/watch?timeoutSeconds=1") == 2


@pytest.mark.parametrize("selector", ["foo%3Dbar", "metadata.name%3Detcd-0,spec%3D"])
def test_component_statuses_know_no_other_field_than_the_name(client: Client, selector: str) -> None:
    answer = client.ask("GET", f"/api/v1/componentstatuses?fieldSelector={selector}")
    assert answer.status == 400, answer
    assert "is not a known field selector" in answer.json["message"]
    listed = client.get("/api/v1/componentstatuses?fieldSelector=metadata.name%3Detcd-0")
    assert [item["metadata"]["name"] for item in listed["items"]] == ["etcd-0"]


@pytest.mark.parametrize("path", ["", "/", "/a/b?x=1"])
def test_head_and_options_go_through_a_proxy(client: Client, path: str) -> None:
    base = "/api/v1/namespaces/default/services/nope/proxy"
    assert client.ask("HEAD", base + path).status == 404
    answer = client.ask("OPTIONS", base + path)
    assert answer.status == 404
    assert answer.json["message"] == 'services "nope" not found'
    assert client.ask("OPTIONS", "/api/v1/namespaces/default/services/nope").status == 405


@pytest.mark.parametrize(
    ("options", "code"),
    [({"orphanDependents": False}, 202), ({"propagationPolicy": "Background"}, 200), ({}, 200)],
)
def test_deletion_that_waits_is_accepted_where_dependents_are_not_orphaned(
    client: Client, namespace: str, options: dict[str, object], code: int
) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    client.post(path, {"metadata": {"name": "held", "finalizers": ["example.com/hold"]}})
    assert client.ask("DELETE", f"{path}/held?dryRun=All", options).status == code
    answer = client.ask("DELETE", f"{path}/held", options)
    assert answer.status == code, answer
    assert answer.json["kind"] == "ConfigMap"
    client.post(path, {"metadata": {"name": "free"}})
    assert client.ask("DELETE", f"{path}/free", options).status == 200
