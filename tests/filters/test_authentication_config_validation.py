"""`--authentication-config`: invalid files are rejected when the server starts."""

from __future__ import annotations

import re

import pytest

from kubist.api.filters.authentication import configuration as authenticationconfig
from kubist.model.meta.object import Object
from tests.filters.authentication_documents import VALID, document

EMAIL = {"username": {"expression": "claims.email"}}


OPTIONAL_EMAIL = {"username": {"expression": "claims.?email.orValue('')"}}


NAME = {"expression": "claims.sub"}


@pytest.mark.parametrize(
    ("issuer", "changes", "why"),
    [
        ({"url": ""}, {}, "jwt[0].issuer.url: Required value"),
        ({"url": "http://a"}, {}, 'jwt[0].issuer.url: Invalid value: "http://a": URL scheme must be https'),
        ({"url": "https://u:p@a"}, {}, "URL must not contain a username or password"),
        ({"url": "https://a?b"}, {}, "URL must not contain a query"),
        ({"url": "https://a#b"}, {}, "URL must not contain a fragment"),
        ({"url": "https://own"}, {}, "URL must not overlap with disallowed issuers: [https://own]"),
        ({"discoveryURL": "https://a/"}, {}, "discoveryURL must be different from URL"),
        (
            {"audiences": []},
            {},
            "jwt[0].issuer.audiences: Required value: at least one jwt[0].issuer.audiences",
        ),
        ({"audiences": ["a", "b"]}, {}, "audienceMatchPolicy must be MatchAny for multiple audiences"),
        (
            {"audienceMatchPolicy": "X"},
            {},
            "audienceMatchPolicy must be empty or MatchAny for single audience",
        ),
        (
            {"audiences": ["a", "a", ""], "audienceMatchPolicy": "MatchAny"},
            {},
            'audiences[1]: Duplicate value: "a", jwt[0].issuer.audiences[2]: Required value',
        ),
        (
            {"certificateAuthority": "junk"},
            {},
            'certificateAuthority: Invalid value: "<omitted>": data does not',
        ),
        ({"egressSelectorType": "x"}, {}, "egress selector must be either controlplane or cluster"),
        (
            {},
            {"claimMappings": {}},
            "claimMappings.username: Required value: claim or expression is required",
        ),
        (
            {},
            {"claimMappings": {"username": {"claim": "sub"}}},
            "username.prefix: Required value: prefix is required",
        ),
        (
            {},
            {"claimMappings": {"username": {"claim": "sub", "expression": "claims.sub"}}},
            "claim and expression can't both be set",
        ),
        (
            {},
            {"claimMappings": {"username": {"expression": "claims.sub", "prefix": ""}}},
            'username.prefix: Invalid value: "": may not be specified when expression is set',
        ),
        ({}, {"claimMappings": {"username": {"expression": "claims."}}}, "expression: Invalid value"),
        (
            {},
            {"claimMappings": {"username": {"expression": "other.sub"}}},
            "compilation failed: ERROR: <input>:1:1",
        ),
        ({}, {"claimMappings": EMAIL}, "claims.email_verified must be used"),
        (
            {},
            {"claimMappings": {"username": {"expression": "claims.?email.orValue('')"}}},
            "claims.email_verified must",
        ),
        (
            {},
            {
                "claimMappings": {
                    "username": {"expression": "claims.sub"},
                    "extra": [{"key": "A", "valueExpression": ""}],
                }
            },
            "claimMappings.extra[0].key: Invalid value",
        ),
        (
            {},
            {
                "claimMappings": {
                    "username": {"expression": "claims.sub"},
                    "extra": [{"key": "a.k8s.io/b", "valueExpression": "'x'"}],
                }
            },
            "are reserved for Kubernetes use",
        ),
        (
            {},
            {"claimValidationRules": [{}]},
            "claimValidationRules[0]: Required value: claim or expression is required",
        ),
        ({}, {"claimValidationRules": [{"expression": "'a'"}]}, "must evaluate to bool"),
        (
            {},
            {"claimValidationRules": [{"claim": "a", "message": "m"}, {"claim": "a"}]},
            'claimValidationRules[0].message: Invalid value: "m": may not be specified when claim is set',
        ),
        (
            {},
            {"userValidationRules": [{"message": "m"}]},
            "userValidationRules[0].expression: Required value",
        ),
        ({}, {"userValidationRules": [{"expression": "user.size > 1"}]}, "undefined field 'size'"),
        ({}, {"claimMapings": {}}, 'strict decoding error: unknown field "jwt[0].claimMapings"'),
        ({"audiences": "me"}, {}, "jwt[0].issuer.audiences must be a list"),
    ],
)
def test_invalid_fields_are_rejected_at_start(issuer: Object, changes: Object, why: str) -> None:
    spec = {
        "issuer": {"url": "https://a", "audiences": ["me"], **issuer},
        "claimMappings": {"username": {"claim": "sub", "prefix": ""}},
        **changes,
    }
    with pytest.raises(ValueError, match=re.escape(why)):
        authenticationconfig.parse(document(spec).encode(), ["https://own"])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (document(VALID, VALID), 'jwt[1].issuer.url: Duplicate value: "https://a"'),
        (document(*[VALID] * 65), "jwt: Too many: 65: must have at most 64 items"),
        (document(version="v2"), 'is registered for version "apiserver.config.k8s.io/v2"'),
        ("kind: AuthorizationConfiguration", 'no kind "AuthorizationConfiguration" is registered'),
        ("- a", "does not contain a"),
        ("a: [", "yaml"),
        (document().replace("jwt: []", "jwt: []\njwt: []"), 'key "jwt" already set in map'),
        (
            document(anonymous={"enabled": False, "conditions": [{"path": "/livez"}]}),
            "anonymous.conditions: Invalid value",
        ),
    ],
)
def test_invalid_documents_are_rejected_at_start(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        authenticationconfig.parse(text.encode(), ())


@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1alpha1"])
def test_all_config_versions_are_accepted(version: str) -> None:
    found = authenticationconfig.parse(document(VALID, version=version, anonymous=None).encode(), ())
    assert [issuer.url for issuer in found.issuers] == ["https://a"] and found.anonymous is None


def test_verified_email_may_name_the_user() -> None:
    rule = {"expression": "claims.?email_verified.orValue(true) == true"}
    spec = VALID | {"claimMappings": EMAIL, "claimValidationRules": [rule]}
    assert authenticationconfig.parse(document(spec).encode(), ()).issuers
