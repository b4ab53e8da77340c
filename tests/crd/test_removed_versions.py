"""Objects that are stored in a version that their CRD no longer has."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.live import Live

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
OLDS = "/apis/removed.example.com/v2/namespaces/default/olds"
WHY = "request to convert CR from an invalid group/version: removed.example.com/v1"
LATER = f"storage is (re)initializing: failed to list removed.example.com/v2, Kind=Old: {WHY}"


def version(name: str, *, storage: bool) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": schema}}


@pytest.fixture
def stuck(live: Live) -> Live:
    """Server with one object stored in v1, which the CRD no longer has, and one in v2."""
    client = live.client
    names = {"plural": "olds", "kind": "Old"}
    versions = [version("v1", storage=True), version("v2", storage=False)]
    spec = {"group": "removed.example.com", "scope": "Namespaced", "names": names, "versions": versions}
    crd = client.post(CRDS, {"metadata": {"name": "olds.removed.example.com"}, "spec": spec})
    path = f"{CRDS}/{crd['metadata']['name']}"
    body = {"kind": "Old", "apiVersion": "removed.example.com/v1", "metadata": {"name": "a"}}
    for _ in range(200):
        if client.ask("GET", OLDS).status == 200:
            break
        time.sleep(0.02)
    client.post(OLDS.replace("/v2/", "/v1/"), body)
    client.patch(path, {"spec": {"versions": [version("v1", storage=False), version("v2", storage=True)]}})
    client.post(OLDS, {**body, "apiVersion": "removed.example.com/v2", "metadata": {"name": "b"}})
    client.patch(f"{path}/status", {"status": {"storedVersions": ["v2"]}})
    client.patch(path, {"spec": {"versions": [version("v2", storage=True)]}})
    return live


@pytest.mark.parametrize("query", ["resourceVersion=0", "watch=1", "watch=1&resourceVersion=0"])
def test_cached_reads_get_429_with_retry_after(stuck: Live, query: str) -> None:
    answer = stuck.client.ask("GET", f"{OLDS}?{query}")
    assert (answer.status, answer.headers["Retry-After"]) == (429, "1"), answer
    assert (answer.json["reason"], answer.json["message"]) == ("TooManyRequests", LATER)


@pytest.mark.parametrize("query", ["", "?labelSelector=x", "?limit=1"])
def test_storage_reads_get_500(stuck: Live, query: str) -> None:
    answer = stuck.client.ask("GET", f"{OLDS}{query}")
    assert (answer.status, answer.json["message"]) == (500, WHY)
    assert stuck.client.ask("DELETE", f"{OLDS}{query}").status == 500


def test_objects_of_other_versions_are_readable(stuck: Live) -> None:
    assert stuck.client.get(f"{OLDS}/b")["metadata"]["name"] == "b"
    [listed] = stuck.client.get(f"{OLDS}?fieldSelector=metadata.name%3Db")["items"]
    assert listed["metadata"]["name"] == "b"
    elsewhere = OLDS.replace("/default/", "/kube-system/")
    assert stuck.client.get(elsewhere)["items"] == []
    assert stuck.client.ask("GET", f"{elsewhere}?watch=1").status == 429
