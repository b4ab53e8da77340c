"""Access reviews and token reviews: validation, and the authorizer's decision in status."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from kubist.api.config import Config
from kubist.api.resources.context import Rules, User
from kubist.api.resources.resource import load_strategy
from kubist.api.resources.strategy import Create
from kubist.base.http.messages import Request
from kubist.model.meta.status import APIError

JO = User("jo", groups=("devs",))


def review(kind: str, spec: dict[str, Any], group: str = "authorization.k8s.io", **metadata: Any) -> Any:
    asked: list[Any] = []

    async def authorize(verb: str, **attributes: Any) -> tuple[bool, str]:
        asked.append((verb, attributes))
        return verb == "get", "because" if verb == "get" else ""

    async def rules_for(user: User, namespace: str) -> Rules:
        return Rules([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}], [])

    async def authenticate(token: str, audiences: tuple[str, ...]) -> Any:
        return (JO, audiences) if token == "good" else None

    objects = SimpleNamespace(rules_for=rules_for, authenticate=authenticate)
    context: Any = SimpleNamespace(
        user=JO,
        authorize=authorize,
        objects=objects,
        config=Config(service_account_issuer=("https://here",)),
        now="2030-01-01T00:00:00Z",
        request=Request("POST", "", "", {}),
    )
    virtual = load_strategy(group, kind).virtual
    assert isinstance(virtual, Create)
    answer = asyncio.run(virtual.create(context, {"metadata": dict(metadata), "spec": spec}))
    return answer["status"], asked


def create_errors(kind: str, spec: dict[str, Any], **metadata: Any) -> list[str]:
    with pytest.raises(APIError) as raised:
        review(kind, spec, **metadata)
    details = raised.value.details or {}
    assert set(details) == {"group", "causes"}
    return [cause["field"] for cause in details["causes"]]


POD = {"verb": "get", "resource": "pods", "namespace": "d"}


def test_self_review_is_about_the_requesting_user() -> None:
    status, asked = review("SelfSubjectAccessReview", {"resourceAttributes": POD})
    assert status == {"allowed": True, "reason": "because"}
    assert asked[0][1]["user"] is JO and asked[0][1]["namespace"] == "d"


def test_subject_review_is_about_the_named_user() -> None:
    path = {"path": "/healthz", "verb": "post"}
    status, asked = review("SubjectAccessReview", {"user": "al", "nonResourceAttributes": path})
    assert status == {"allowed": False}
    assert asked == [("post", {"path": "/healthz", "user": User("al"), "verdicts": []})]


@pytest.mark.parametrize(
    ("kind", "spec", "fields"),
    [
        ("SelfSubjectAccessReview", {}, ["spec.resourceAttributes"]),
        ("SubjectAccessReview", {"resourceAttributes": POD}, ["spec.user"]),
        (
            "SubjectAccessReview",
            {"user": "a", "resourceAttributes": POD, "nonResourceAttributes": {}},
            ["spec.nonResourceAttributes"],
        ),
        (
            "LocalSubjectAccessReview",
            {"user": "a", "resourceAttributes": POD},
            ["spec.resourceAttributes.namespace"],
        ),
        (
            "SelfSubjectAccessReview",
            {
                "resourceAttributes": {
                    **POD,
                    "labelSelector": {"rawSelector": "a", "requirements": [{"key": "a", "operator": "Huh"}]},
                }
            },
            ["spec.resourceAttributes.labelSelector.rawSelector"],
        ),
        (
            "SelfSubjectAccessReview",
            {"resourceAttributes": {**POD, "fieldSelector": {"requirements": [{"operator": "In"}]}}},
            [
                "spec.resourceAttributes.fieldSelector.requirements[0].key",
                "spec.resourceAttributes.fieldSelector.requirements[0].values",
            ],
        ),
    ],
)
def test_invalid_review_is_rejected(kind: str, spec: dict[str, Any], fields: list[str]) -> None:
    assert create_errors(kind, spec) == fields


def test_review_with_metadata_is_rejected() -> None:
    assert create_errors("SelfSubjectAccessReview", {"resourceAttributes": POD}, name="x") == ["metadata"]
    review("SelfSubjectAccessReview", {"resourceAttributes": POD}, managedFields=[{}])


def test_invalid_selectors_are_ignored_with_evaluation_error() -> None:
    spec = {"resourceAttributes": {**POD, "labelSelector": {"rawSelector": "!!bad"}}}
    status, _ = review("SelfSubjectAccessReview", spec)
    assert status["evaluationError"] == "spec.resourceAttributes.labelSelector ignored due to parse error"


def test_rules_review_requires_a_namespace() -> None:
    status, _ = review("SelfSubjectRulesReview", {"namespace": "d"})
    assert status["resourceRules"] and not status["incomplete"]
    with pytest.raises(APIError, match="no namespace on request"):
        review("SelfSubjectRulesReview", {})


def test_token_review_returns_user_for_server_audience() -> None:
    status, _ = review("TokenReview", {"token": "good"}, "authentication.k8s.io")
    assert status == {"authenticated": True, "user": JO.info(), "audiences": ["https://here"]}
    status, _ = review("TokenReview", {"token": "bad"}, "authentication.k8s.io")
    assert status == {"user": {}, "error": "invalid bearer token"}
    with pytest.raises(APIError, match="token is required"):
        review("TokenReview", {}, "authentication.k8s.io")


def test_self_subject_review_returns_user_info() -> None:
    status, _ = review("SelfSubjectReview", {}, "authentication.k8s.io")
    assert status == {"userInfo": {"username": "jo", "groups": ["devs"]}}
