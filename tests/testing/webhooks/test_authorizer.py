"""Authorizers of tests: they decide at once, before RBAC, and are removed at once."""

from __future__ import annotations

from typing import Any

import pytest

from kubist.testing import AuthorizationRequest, Cluster, Denied
from kubist.testing.cluster import Refused

PODS = "/api/v1/namespaces/default/pods"
READ_PODS = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


def test_decisions_hold_at_once(cluster: Cluster) -> None:
    alice = cluster.user("alice", groups=["developers"], rules=READ_PODS)
    decision: Any = None

    @cluster.authorizer
    def decide(request: AuthorizationRequest) -> Any:
        return decision

    assert alice.request("GET", PODS)["items"] == [], "no opinion: RBAC allows"
    decision = False
    with pytest.raises(Refused, match='User "alice" cannot list resource "pods"') as refused:
        alice.request("GET", PODS)
    assert refused.value.code == 403
    decision = (False, "it is Sunday")
    with pytest.raises(Refused, match="it is Sunday"):
        alice.request("GET", PODS)
    decision = True
    assert alice.request("GET", "/api/v1/secrets")["items"] == [], "RBAC would not allow it"
    decide.remove()
    assert alice.request("GET", PODS)["items"] == []
    with pytest.raises(Refused, match="cannot list"):
        alice.request("GET", "/api/v1/secrets")
    assert len(decide.calls) == 4
    assert cluster.request("GET", "/kubist/v1/authorizers") == {"items": []}


def test_request_of_an_authorizer(cluster: Cluster) -> None:
    alice = cluster.user("alice", groups=["developers"])
    with cluster.authorizer(lambda request: True) as hook:
        alice.request("GET", f"{PODS}?labelSelector=a%3Db")
        alice.request("GET", "/version")
        alice.request("GET", "/apis/apps/v1/namespaces/default/deployments")
        with pytest.raises(Refused):
            alice.request("GET", f"{PODS}/web/log")
    listed, version, deployments, log = hook.calls
    assert listed.user == "alice" and set(listed.groups) == {"developers", "system:authenticated"}
    assert (listed.verb, listed.resource, listed.version, listed.namespace) == (
        "list",
        "pods",
        "v1",
        "default",
    )
    assert listed.raw["resourceAttributes"]["labelSelector"]["requirements"][0]["key"] == "a"
    assert (version.verb, version.path, version.resource) == ("get", "/version", "")
    assert deployments.resource == "deployments.apps"
    assert (log.resource, log.subresource, log.name) == ("pods", "log", "web")
    assert repr(hook.calls) == (
        "[<alice: list pods default>, <alice: get /version>, "
        "<alice: list deployments.apps default>, <alice: get pods/log default/web>]"
    )


def test_access_reviews_ask_the_authorizer(cluster: Cluster) -> None:
    alice = cluster.user("alice")
    review = {"spec": {"resourceAttributes": {"verb": "get", "resource": "secrets"}}}
    assert alice.request("POST", REVIEWS, review)["status"]["allowed"] is False

    @cluster.authorizer
    async def decide(request: AuthorizationRequest) -> tuple[bool | None, str]:
        return (True, "a friend") if request.resource == "secrets" else (None, "")

    assert alice.request("POST", REVIEWS, review)["status"] == {"allowed": True, "reason": "a friend"}


def test_the_newest_authorizer_is_asked_first(cluster: Cluster) -> None:
    alice = cluster.user("alice")
    first = cluster.authorizer(lambda request: False)
    with cluster.authorizer(lambda request: request.verb == "list" or None):
        assert alice.request("GET", PODS)["items"] == []
        with pytest.raises(Refused):
            alice.request("GET", f"{PODS}/web")
    assert len(first.calls) == 1


def test_administrators_are_not_asked_about(cluster: Cluster) -> None:
    with cluster.authorizer(lambda request: False) as hook:
        assert cluster.get("ns/default")
    assert hook.calls == []


def fail(request: AuthorizationRequest) -> bool:
    raise ValueError("boom")


def refuse(request: AuthorizationRequest) -> bool:
    raise Denied("not you")


@pytest.mark.parametrize(
    ("function", "message", "errors"),
    [
        (fail, r"authorizer fail failed: ValueError: boom \(test_authorizer.py:\d+\)", 1),
        (lambda request: "yes", "authorizer returned 'yes'; return True, False or None", 1),
        (lambda request: (True, 5), "return True, False or None", 1),
        (refuse, "not you", 0),
    ],
)
def test_failing_authorizers_deny(cluster: Cluster, function: Any, message: str, errors: int) -> None:
    alice = cluster.user("alice", rules=READ_PODS)
    hook = cluster.authorizer(function)
    with pytest.raises(Refused, match=message) as refused:
        alice.request("GET", PODS)
    assert refused.value.code == 403 and len(hook.errors) == errors


def test_authorizers_may_use_the_cluster(cluster: Cluster) -> None:
    alice = cluster.user("alice")

    @cluster.authorizer
    def owner_only(request: AuthorizationRequest) -> bool:
        found = cluster.get(f"namespace/{request.namespace}")
        return bool((found["metadata"].get("labels") or {}).get("owner") == request.user)

    with pytest.raises(Refused):
        alice.request("GET", PODS)
    cluster.load(
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": "default", "labels": {"owner": "alice"}},
        }
    )
    assert alice.request("GET", PODS)["items"] == []


def test_decorator_with_arguments_is_explained(cluster: Cluster) -> None:
    with pytest.raises(TypeError, match="without arguments"):
        cluster.authorizer("pods")  # type: ignore[arg-type]
