"""Users and service accounts of tests: their rules hold, and their credentials work in clients."""

from __future__ import annotations

import subprocess
import urllib.parse
from typing import Any

import pytest
from kubernetes import client

from kubist.testing import Cluster
from kubist.testing.cluster import Refused
from tests import programs

PODS = "/api/v1/namespaces/default/pods"
READ_PODS = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


def who(user: Any) -> Any:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    return user.request("POST", WHO, review)["status"]["userInfo"]


def test_user_may_do_what_the_rules_say(cluster: Cluster) -> None:
    alice = cluster.user("alice", groups=["developers"], rules=READ_PODS)
    found = who(alice)
    assert found["username"] == "alice" and set(found["groups"]) == {"developers", "system:authenticated"}
    assert alice.request("GET", PODS)["items"] == []
    assert alice.request("GET", "/api/v1/pods")["items"] == []
    with pytest.raises(Refused, match='User "alice" cannot list resource "secrets"'):
        alice.request("GET", "/api/v1/secrets")


def test_rules_of_a_namespace_hold_there(cluster: Cluster) -> None:
    bob = cluster.user("bob", rules=READ_PODS, namespace="default")
    assert bob.request("GET", PODS)["items"] == []
    with pytest.raises(Refused, match="cannot list"):
        bob.request("GET", "/api/v1/namespaces/kube-system/pods")


def test_user_without_rules_may_nothing(cluster: Cluster) -> None:
    with pytest.raises(Refused, match="cannot list"):
        cluster.user("weird user/ü").request("GET", PODS)


@pytest.mark.parametrize("name", ["team/alice", "https://issuer.example/realm#bob", "weird user/ü"])
def test_user_with_a_slash_in_the_name_is_deleted(cluster: Cluster, name: str) -> None:
    user = cluster.user(name, rules=READ_PODS)
    assert user.request("GET", PODS)["items"] == []
    cluster.request("DELETE", f"/kubist/v1/users/{urllib.parse.quote(name, safe='')}")
    assert cluster.request("GET", "/kubist/v1/users")["items"] == []
    with pytest.raises(Refused):
        user.request("GET", PODS)


def test_clients_and_kubeconfig_act_as_the_user(cluster: Cluster) -> None:
    alice = cluster.user("alice", rules=READ_PODS)
    core = client.CoreV1Api(alice.clients.kubernetes)
    assert core.list_namespaced_pod("default").items == []
    with pytest.raises(client.ApiException, match="403"):
        core.list_namespaced_secret("default")
    if programs.find("kubectl"):
        done = subprocess.run(
            ["kubectl", "--kubeconfig", str(alice.kubeconfig), "auth", "whoami", "-o", "name"],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr


def test_service_account_has_a_token_and_rules(cluster: Cluster) -> None:
    operator = cluster.service_account("operator", namespace="system", rules=READ_PODS)
    assert who(operator)["username"] == "system:serviceaccount:system:operator"
    assert operator.request("GET", PODS)["items"] == []
    with pytest.raises(Refused, match="cannot list"):
        operator.request("GET", "/api/v1/secrets")
    assert client.CoreV1Api(operator.clients.kubernetes).list_namespaced_pod("default").items == []


def test_deleted_user_is_gone(cluster: Cluster) -> None:
    alice = cluster.user("alice", rules=READ_PODS)
    assert [user["name"] for user in cluster.request("GET", "/kubist/v1/users")["items"]] == ["alice"]
    cluster.request("DELETE", "/kubist/v1/users/alice")
    with pytest.raises(Refused) as refused:
        alice.request("GET", PODS)
    assert refused.value.code == 401
    assert cluster.request("GET", "/kubist/v1/users")["items"] == []
    again = cluster.user("alice", rules=READ_PODS)
    assert again.request("GET", PODS)["items"] == []


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({}, 422, "name"),
        ({"name": "x" * 300}, 422, "name"),
        ({"name": 5}, 422, "name"),
        ({"name": "a", "groups": [1]}, 422, "groups"),
        ({"name": "a", "rules": "all"}, 422, "rules"),
        ({"name": "a", "roles": []}, 422, "roles"),
        ({"name": "a", "namespace": "missing"}, 404, ""),
        ({"name": "a", "rules": [{"verbs": []}]}, 422, "rules[0].verbs"),
    ],
)
def test_invalid_user_is_rejected_and_nothing_is_made(
    cluster: Cluster, body: dict[str, Any], code: int, field: str
) -> None:
    with pytest.raises(Refused) as refused:
        cluster.request("POST", "/kubist/v1/users", body)
    assert refused.value.code == code
    if field:
        assert field in [cause["field"] for cause in refused.value.status["details"]["causes"]]
    assert cluster.request("GET", "/kubist/v1/users")["items"] == []


def test_name_that_is_taken_is_rejected(cluster: Cluster) -> None:
    cluster.user("alice")
    with pytest.raises(Refused) as refused:
        cluster.user("alice")
    assert refused.value.code == 409


ACCOUNTS = "/kubist/v1/serviceaccounts"


def test_service_account_over_http(cluster: Cluster) -> None:
    made = cluster.request("POST", ACCOUNTS, {"name": "robot", "namespace": "new", "rules": READ_PODS})
    assert made["user"] == "system:serviceaccount:new:robot"
    assert made["kubeconfig"]["users"][0]["user"] == {"token": made["token"]}
    assert made["kubeconfig"]["contexts"][0]["context"]["namespace"] == "new"
    assert cluster.request("GET", PODS, token=made["token"])["items"] == []
    secrets = [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]}]
    again = cluster.request("POST", ACCOUNTS, {"name": "robot", "namespace": "new", "rules": secrets})
    assert cluster.request("GET", "/api/v1/secrets", token=again["token"])["items"] == []
    with pytest.raises(Refused, match="cannot list"):
        cluster.request("GET", PODS, token=made["token"])


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "name"),
        ({"name": "a", "namespace": "a.b"}, "namespace"),
        ({"name": "a", "rules": "all"}, "rules"),
        ({"name": "a", "groups": ["x"]}, "groups"),
        ({"name": "a", "namespace": "fresh", "rules": [{"resources": ["pods"]}]}, "rules[0].verbs"),
    ],
)
def test_invalid_service_account_changes_nothing(cluster: Cluster, body: Any, field: str) -> None:
    with pytest.raises(Refused) as refused:
        cluster.request("POST", ACCOUNTS, body)
    assert refused.value.code == 422
    assert refused.value.status["details"]["causes"][0]["field"] == field
    assert [found for found in cluster.list("serviceaccounts") if found["metadata"]["name"] == "a"] == []
    assert "fresh" not in [found["metadata"]["name"] for found in cluster.list("namespaces")]
