"""`/kubist/v1/authorizers`: authorization webhooks of a running server, from any language."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from kubist.testing import Cluster
from kubist.testing.cluster import Refused

PATH = "/kubist/v1/authorizers"
PODS = "/api/v1/namespaces/default/pods"
READ_PODS = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]


@pytest.fixture
def closed_port() -> int:
    """A port on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@pytest.mark.parametrize(("policy", "allowed"), [("Deny", False), ("NoOpinion", True)])
def test_failure_policy(cluster: Cluster, closed_port: int, policy: str, allowed: bool) -> None:
    alice = cluster.user("alice", rules=READ_PODS)
    config = {"url": f"https://127.0.0.1:{closed_port}/authorize"}
    body = {"name": "down", "clientConfig": config, "failurePolicy": policy, "timeout": "2s"}
    made = cluster.request("POST", PATH, body)
    assert made == body and cluster.request("GET", PATH) == {"items": [made]}
    if allowed:
        assert alice.request("GET", PODS)["items"] == []
    else:
        with pytest.raises(Refused) as refused:
            alice.request("GET", PODS)
        assert refused.value.code in (403, 500)
    cluster.request("DELETE", f"{PATH}/down")
    assert alice.request("GET", PODS)["items"] == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "name"),
        ({"name": "a"}, "clientConfig.url"),
        ({"name": "A b", "clientConfig": {"url": "https://x/y"}}, "name"),
        ({"name": "a", "clientConfig": {"url": "http://x/y"}}, "clientConfig.url"),
        ({"name": "a", "clientConfig": {"url": "https://x/y", "caBundle": "%%"}}, "clientConfig.caBundle"),
        (
            {"name": "a", "clientConfig": {"url": "https://x/y", "caBundle": "aGVsbG8="}},
            "clientConfig.caBundle",
        ),
        ({"name": "a", "clientConfig": {"url": "https://x/y", "service": {}}}, "clientConfig.service"),
        ({"name": "a", "clientConfig": []}, "clientConfig"),
        ({"name": "a", "clientConfig": {"url": "https://x/y"}, "timeout": "1h"}, "timeout"),
        ({"name": "a", "clientConfig": {"url": "https://x/y"}, "timeout": 0}, "timeout"),
        ({"name": "a", "clientConfig": {"url": "https://x/y"}, "failurePolicy": "Fail"}, "failurePolicy"),
        ({"name": "a", "clientConfig": {"url": "https://x/y"}, "url": "x"}, "url"),
    ],
)
def test_invalid_authorizer_is_rejected(kubist_server: Cluster, body: dict[str, Any], field: str) -> None:
    with pytest.raises(Refused) as refused:
        kubist_server.request("POST", PATH, body)
    assert refused.value.code == 422
    assert field in [cause["field"] for cause in refused.value.status["details"]["causes"]]
    assert kubist_server.request("GET", PATH) == {"items": []}


def test_names_are_unique_and_must_exist(cluster: Cluster) -> None:
    body = {"name": "a", "clientConfig": {"url": "https://127.0.0.1:1/"}}
    cluster.request("POST", PATH, body)
    with pytest.raises(Refused) as refused:
        cluster.request("POST", PATH, body)
    assert refused.value.code == 409
    cluster.request("DELETE", f"{PATH}/a")
    with pytest.raises(Refused) as refused:
        cluster.request("DELETE", f"{PATH}/a")
    assert refused.value.code == 404


def test_number_is_limited(cluster: Cluster) -> None:
    for number in range(100):
        cluster.request("POST", PATH, {"name": f"a{number}", "clientConfig": {"url": "https://127.0.0.1:1/"}})
    with pytest.raises(Refused, match="already 100 authorizers"):
        cluster.request("POST", PATH, {"name": "more", "clientConfig": {"url": "https://127.0.0.1:1/"}})


def test_only_authorized_users_may_use_it(cluster: Cluster) -> None:
    alice = cluster.user("alice", rules=READ_PODS)
    for method, path in (("GET", PATH), ("POST", PATH), ("DELETE", f"{PATH}/a")):
        with pytest.raises(Refused) as refused:
            alice.request(method, path, {})
        assert refused.value.code == 403
