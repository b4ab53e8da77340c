"""Authentication and authorization webhooks over real HTTPS."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
import yaml

from kubist.api.filters import webhooks
from kubist.api.filters.remote_review import review_status
from kubist.api.webhooks.reviews import VALUES_LIMIT
from kubist.base.http.client.calls import CallFailed
from kubist.model.meta.object import Object
from tests.filters.askers import Person, Remote, ask, body_of
from tests.live import Client, Live, Pki


@pytest.fixture
def kubeconfig(remote: Remote, server_pki: Pki, tmp_path: Path) -> str:
    cluster = {"server": f"{remote.url}/review", "certificate-authority": str(server_pki.path("ca.crt"))}
    document = {
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": "secret"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    (tmp_path / "webhook.yaml").write_text(yaml.safe_dump(document))
    return str(tmp_path / "webhook.yaml")


def test_authorization_webhook_decides(server_pki: Pki, remote: Remote, kubeconfig: str) -> None:
    def review(asked: Object) -> Object:
        spec = asked["spec"]
        attributes = spec.get("resourceAttributes") or {}
        if attributes.get("resource") == "secrets":
            return {"status": {"allowed": False, "denied": True, "reason": "never"}}
        allowed = attributes.get("resource") == "configmaps" and spec["user"] == "dev"
        return {"status": {"allowed": allowed, "reason": "" if allowed else "not by me"}}

    remote.answers["/review"] = review
    flags = {
        "authorization_mode": ("Webhook", "RBAC"),
        "authorization_webhook_config_file": kubeconfig,
        "authorization_webhook_version": "v1",
    }
    with Live(server_pki, **flags) as live:
        assert ask(live, "GET", "/api/v1/namespaces/default/configmaps", "dev-token").status == 200
        _, asked, headers = remote.asked[-1]
        assert asked["apiVersion"] == "authorization.k8s.io/v1"
        assert asked["spec"] == {
            "resourceAttributes": {
                "namespace": "default",
                "verb": "list",
                "version": "v1",
                "resource": "configmaps",
            },
            "user": "dev",
            "uid": "u-dev",
            "groups": ["devs", "system:authenticated"],
        }
        assert headers["Authorization"] == "Bearer secret"
        count = len(remote.asked)
        assert ask(live, "GET", "/api/v1/namespaces/default/configmaps", "dev-token").status == 200
        assert len(remote.asked) == count, "the answer is remembered"
        refused = ask(live, "GET", "/api/v1/secrets", "dev-token")
        assert refused.status == 403 and b": never" in body_of(refused)
        unknown = ask(live, "GET", "/api/v1/pods", "dev-token")
        assert unknown.status == 403 and b": not by me" in body_of(unknown)
        assert ask(live, "GET", "/version", "dev-token").status == 200, (
            "RBAC allows what the remote leaves open"
        )
        live.client.close()


def test_failed_authorization_is_an_internal_error(server_pki: Pki, remote: Remote, kubeconfig: str) -> None:
    remote.answers["/review"] = lambda _: 404
    flags = {"authorization_mode": ("Webhook", "RBAC"), "authorization_webhook_config_file": kubeconfig}
    with Live(server_pki, **flags) as live:
        failed = ask(live, "GET", "/api/v1/nodes?x=%3C&y=1", "dev-token")
        why = "the server could not find the requested resource"
        assert failed.status == 500
        page = f'Internal Server Error: "/api/v1/nodes?x=%3C&amp;y=1": {why}\n'
        assert body_of(failed).decode() == page
        assert ask(live, "GET", "/version", "dev-token").status == 200, "another authorizer allows it"
        assert ask(live, "GET", "/api/v1/nodes", "admin-token").status == 200
        review = {"spec": {"user": "dev", "resourceAttributes": {"verb": "list", "resource": "nodes"}}}
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        assert live.client.post(path, review)["status"] == {"allowed": False, "evaluationError": why}
        remote.answers["/review"] = lambda _: {"status": {"allowed": True, "denied": True, "reason": "r"}}
        told = live.client.post(path, review)["status"]
        assert (told["allowed"], told["denied"], told["reason"]) == (False, True, "r")
        assert "both allow and deny" in told["evaluationError"]
        remote.answers["/review"] = lambda _: {"status": {"allowed": "false"}}
        assert ask(live, "GET", "/api/v1/nodes?text=1", "dev-token").status == 500
        live.client.close()


def test_review_is_retried_after_a_temporary_failure(
    server_pki: Pki, remote: Remote, kubeconfig: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "FIRST_PAUSE", 0.01)
    answers: list[Object | int] = [500, 429, 504, {"status": {"allowed": True}}]
    remote.answers["/review"] = lambda _: answers.pop(0) if len(answers) > 1 else answers[0]
    flags = {"authorization_mode": ("Webhook",), "authorization_webhook_config_file": kubeconfig}
    with Live(server_pki, **flags) as live:
        assert ask(live, "GET", "/api/v1/nodes", "dev-token").status == 200
        assert len(remote.asked) == 4
        answers[:] = [500]
        assert ask(live, "GET", "/api/v1/pods", "dev-token").status == 500
        assert len(remote.asked) == 4 + webhooks.TRIES
        answers[:] = [503]
        assert ask(live, "GET", "/api/v1/secrets", "dev-token").status == 500
        assert len(remote.asked) == 5 + webhooks.TRIES, "a service that is away is not asked again"
        live.client.close()


def test_subject_access_review_contains_selectors(server_pki: Pki, remote: Remote, kubeconfig: str) -> None:
    """Selectors of requests, and of `authorizer` in CEL expressions."""

    def review(asked: Object) -> Object:
        attributes = asked["spec"].get("resourceAttributes") or {}
        narrow = attributes.get("fieldSelector") == {
            "requirements": [{"key": "metadata.name", "operator": "In", "values": ["mine"]}]
        }
        return {"status": {"allowed": attributes.get("resource") != "secrets" or narrow}}

    remote.answers["/review"] = review
    flags = {
        "authorization_mode": ("Webhook",),
        "authorization_webhook_config_file": kubeconfig,
        "authorization_webhook_version": "v1",
    }
    secrets, group = "/api/v1/namespaces/default/secrets", "/apis/admissionregistration.k8s.io/v1"
    with Live(server_pki, **flags) as live:
        assert ask(live, "GET", secrets, "dev-token").status == 403
        assert ask(live, "GET", f"{secrets}?fieldSelector=metadata.name%3Dmine", "dev-token").status == 200
        labels = "a%20in%20(x,y),!b"
        ask(live, "GET", f"/api/v1/namespaces/default/pods?labelSelector={labels}", "dev-token")
        assert remote.asked[-1][1]["spec"]["resourceAttributes"]["labelSelector"]["requirements"] == [
            {"key": "a", "operator": "In", "values": ["x", "y"]},
            {"key": "b", "operator": "DoesNotExist"},
        ]
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
        check = "authorizer.group('').resource('secrets').namespace('default')"
        chosen = "fieldSelector('metadata.name=' + object.metadata.name).check('list').allowed()"
        policy = {
            "metadata": {"name": "p"},
            "spec": {
                "matchConstraints": {"resourceRules": [rule]},
                "validations": [{"expression": f"{check}.{chosen}"}],
            },
        }
        binding = {"metadata": {"name": "p"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}}
        live.client.post(f"{group}/validatingadmissionpolicies", policy)
        live.client.post(f"{group}/validatingadmissionpolicybindings", binding)
        dev = Client(live.server.port, server_pki, "dev-token")
        for name, code in (("mine", 201), ("yours", 422)):
            made = dev.ask("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": name}})
            assert made.status == code
        dev.close()


def test_token_webhook_authenticates(server_pki: Pki, remote: Remote, kubeconfig: str) -> None:
    def review(asked: Object) -> Object:
        if asked["spec"]["token"] != "remote-token":
            return {"status": {"authenticated": False}}
        info = {"username": "far", "uid": "9", "groups": ["g"], "extra": {"k": ["v"]}}
        return {"status": {"authenticated": True, "user": info}}

    remote.answers["/review"] = review
    flags = {
        "authentication_token_webhook_config_file": kubeconfig,
        "authentication_token_webhook_version": "v1",
    }
    with Live(server_pki, **flags) as live:
        info = Person(live, "remote-token").whoami()
        assert info == {
            "username": "far",
            "uid": "9",
            "groups": ["g", "system:authenticated"],
            "extra": {"k": ["v"]},
        }
        assert ask(live, "GET", "/version", "other-token").status == 401
        count = len(remote.asked)
        assert Person(live, "remote-token").whoami() == info
        assert len(remote.asked) == count
        remote.answers["/review"] = lambda _: 500
        assert ask(live, "GET", "/version", "third-token").status == 401
        assert ask(live, "GET", "/version", "dev-token").status == 200
        live.client.close()


def test_replaced_token_file_is_read_again(
    server_pki: Pki, remote: Remote, kubeconfig: str, tmp_path: Path
) -> None:
    """Tokens of service accounts in files live for an hour."""
    token, path = tmp_path / "token", Path(kubeconfig)
    token.write_text("first")
    path.write_text(path.read_text().replace("token: secret", "tokenFile: token"))
    remote.answers["/review"] = lambda _: {"status": {"allowed": True}}
    flags = {"authorization_mode": ("Webhook",), "authorization_webhook_config_file": kubeconfig}
    with Live(server_pki, **flags) as live:
        for number, (content, sent) in enumerate(
            (("first", "first"), ("second\n", "second"), ("", "second"))
        ):
            token.write_text(content)
            assert ask(live, "GET", f"/version?{number}", "dev-token").status == 200
            assert ask(live, "GET", f"/api/v1/namespaces/n{number}/pods", "dev-token").status == 200
            assert remote.asked[-1][2]["Authorization"] == f"Bearer {sent}"
        live.client.close()


@pytest.mark.parametrize(
    "change",
    [
        {"status": {"allowed": "true", "authenticated": "true", "user": {"username": "jane"}}},
        {"status": {"allowed": "false", "authenticated": "false", "user": {"username": "jane"}}},
        {"status": {"allowed": 1, "authenticated": 1, "user": {"username": "jane"}}},
        {"status": {"allowed": True, "authenticated": True, "denied": "no", "user": {"username": "jane"}}},
        {"status": {"allowed": True, "authenticated": True, "error": 5, "reason": 5}},
        {"status": {"allowed": True, "authenticated": True}, "kind": "Pod"},
        {"status": None},
    ],
)
def test_answer_of_a_wrong_type_allows_nothing(change: Object) -> None:
    """The text "false" is true in Python."""
    for kind in ("SubjectAccessReview", "TokenReview"):
        review: Object = {"kind": kind, "apiVersion": "x/v1", "spec": {}, "status": {}}
        with pytest.raises(CallFailed, match="the webhook's answer"):
            review_status(orjson.dumps(review | change), review)


def test_review_with_too_many_values_is_malformed() -> None:
    review = {"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1"}
    body = orjson.dumps({**review, "status": {"user": {"groups": [[]] * (VALUES_LIMIT + 1)}}})
    with pytest.raises(CallFailed, match="no review"):
        review_status(body, review)


def test_null_fields_of_an_answer_are_absent() -> None:
    review: Object = {"kind": "SubjectAccessReview", "apiVersion": "x/v1"}
    status = {"allowed": True, "denied": None, "reason": None}
    assert review_status(orjson.dumps({"status": status}), review) == status
