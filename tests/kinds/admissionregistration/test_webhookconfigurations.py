"""Webhook configurations: validation, and faults that a stored configuration may keep."""

from typing import Any

import pytest

from kubist.api.webhooks.client_config import validate_url

V1 = "admissionregistration.k8s.io/v1"
Causes = list[tuple[str, str]]


def hook(**fields: Any) -> dict[str, Any]:
    fine = {
        "name": "a.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"url": "https://example.com"},
    }
    return {"webhooks": [{**fine, **fields}]}


def rules(**fields: Any) -> dict[str, Any]:
    fine = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
    return hook(rules=[{**fine, **fields}])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (hook(), []),
        (hook(name="a.b"), [("webhooks[0].name", "Invalid")]),
        (hook(sideEffects="Some"), [("webhooks[0].sideEffects", "NotSupported")]),
        (hook(sideEffects=None), [("webhooks[0].sideEffects", "Required")]),
        (hook(timeoutSeconds=31), [("webhooks[0].timeoutSeconds", "Invalid")]),
        (hook(failurePolicy="Shrug"), [("webhooks[0].failurePolicy", "NotSupported")]),
        (hook(admissionReviewVersions=["v2"]), [("webhooks[0].admissionReviewVersions", "Invalid")]),
        (hook(clientConfig={}), [("webhooks[0].clientConfig", "Required")]),
        # As in the reference, a missing name is reported as a missing namespace.
        (
            hook(clientConfig={"service": {"namespace": "d"}}),
            [("webhooks[0].clientConfig.service.namespace", "Required")],
        ),
        (
            hook(clientConfig={"service": {"name": "s", "namespace": "d", "path": "/a//b"}}),
            [("webhooks[0].clientConfig.service.path", "Invalid")],
        ),
        (rules(operations=["*", "CREATE"]), [("webhooks[0].rules[0].operations", "Invalid")]),
        (rules(resources=["pods/*", "pods/log"]), [("webhooks[0].rules[0].resources[1]", "Invalid")]),
        (rules(resources=["*", "pods"]), [("webhooks[0].rules[0].resources", "Invalid")]),
        (rules(resources=["*", "pods/log"]), []),
        (rules(scope="World"), [("webhooks[0].rules[0].scope", "NotSupported")]),
        (hook(matchConditions=[{"name": "a"}]), [("webhooks[0].matchConditions[0].expression", "Required")]),
    ],
)
def test_invalid_webhook_is_rejected(kind_of: Any, given: dict[str, Any], expected: Causes) -> None:
    for kind in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"):
        assert kind_of(V1, kind).create_errors(given) == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://example.com/path", []),
        ("https://[::1]:443/", []),
        ("http://example.com", ["Invalid"]),
        ("example.com", ["Invalid", "Invalid"]),
        ("https://user@example.com/?a=b#c", ["Invalid", "Invalid", "Invalid"]),
        ("://", ["Required"]),
        ("https://example.com:http", ["Required"]),
        ("https://exa mple.com", ["Required"]),
        ("https://example.com/%zz", ["Required"]),
    ],
)
def test_webhook_url_validation(url: str, expected: list[str]) -> None:
    assert [error.reason.removeprefix("FieldValue") for error in validate_url(url, "url")] == expected


def test_webhook_names_must_be_unique(kind_of: Any) -> None:
    twice = {"webhooks": hook()["webhooks"] * 2}
    assert kind_of(V1, "ValidatingWebhookConfiguration").create_errors(twice) == [
        ("webhooks[1].name", "Duplicate")
    ]


def test_stored_faults_stay_allowed(kind_of: Any) -> None:
    configurations = kind_of(V1, "MutatingWebhookConfiguration")
    old = configurations.create(hook(sideEffects="Some", admissionReviewVersions=["v1beta7"]))
    assert configurations.change_errors(old, lambda c: c["webhooks"][0].update(timeoutSeconds=5)) == []
    assert old["webhooks"][0]["reinvocationPolicy"] == "Never"
