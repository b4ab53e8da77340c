"""Resource versions: optimistic locking, malformed versions, and versions that the server has not reached."""

from __future__ import annotations

import pytest

from kubist.api.verbs import resource_versions
from tests.live import Client


@pytest.fixture
def path(client: Client, namespace: str) -> str:
    """URL of a ConfigMap that was updated once."""
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    created = client.post(maps, {"metadata": {"name": "c"}, "data": {"a": "1"}})
    client.put(f"{maps}/c", {**created, "data": {"a": "2"}})
    return f"{maps}/c"


def update(client: Client, path: str, version: str | None) -> tuple[int, str]:
    """Status and message of an update with this resourceVersion."""
    metadata = {"name": "c"} if version is None else {"name": "c", "resourceVersion": version}
    answer = client.ask("PUT", path, {"metadata": metadata, "data": {"a": "3"}})
    return answer.status, answer.json.get("message", "")


def test_update_of_an_old_version_conflicts(client: Client, path: str) -> None:
    code, message = update(client, path, "1")
    assert code == 409
    assert message == f'Operation cannot be fulfilled on configmaps "c": {resource_versions.MODIFIED}'


@pytest.mark.parametrize("version", [None, "", "0"])
def test_update_without_a_version_overwrites(client: Client, path: str, version: str | None) -> None:
    assert update(client, path, version)[0] == 200


def test_update_of_a_kind_with_locking_needs_a_version(client: Client, namespace: str) -> None:
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    client.post(leases, {"metadata": {"name": "l"}})
    answer = client.ask("PUT", f"{leases}/l", {"metadata": {"name": "l"}})
    assert answer.status == 422
    assert (
        "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
        in answer.json["message"]
    )


def test_patch_with_an_old_version_conflicts(client: Client, path: str) -> None:
    body = {"metadata": {"resourceVersion": "1"}, "data": {"a": "4"}}
    answer = client.ask("PATCH", path, body, "application/merge-patch+json")
    assert answer.status == 409


def test_malformed_version_of_a_list_is_a_bad_request(client: Client, path: str) -> None:
    answer = client.ask("GET", path.removesuffix("/c") + "?resourceVersion=x")
    assert answer.status == 400
    assert 'resourceVersion: Invalid value: "x"' in answer.json["message"]


def test_version_of_the_future_times_out(client: Client, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource_versions, "WAIT_SECONDS", 0.1)
    answer = client.ask("GET", path + "?resourceVersion=999999999")
    assert answer.status == 504
    assert answer.json["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
