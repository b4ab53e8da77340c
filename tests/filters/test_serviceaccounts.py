"""Service-account tokens: valid while their bound objects exist."""

from __future__ import annotations

import base64
import time
from typing import Any

import pytest

from kubist.api.filters.authentication.serviceaccounts import LAST_USED, LEGACY_ISSUER
from kubist.api.filters.authentication.tokens import TokenSigner
from kubist.api.filters.usernames import split_username
from kubist.model.meta.object import Object
from tests.filters.askers import Person, grant
from tests.live import Client, Live

SELF = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"


@pytest.fixture
def account(admin: Client, space: str) -> Object:
    made: Object = admin.post(f"/api/v1/namespaces/{space}/serviceaccounts", {"metadata": {"name": "robot"}})
    return made


def token(admin: Client, space: str, name: str = "robot", **spec: Any) -> str:
    made: str = admin.post(f"/api/v1/namespaces/{space}/serviceaccounts/{name}/token", {"spec": spec})[
        "status"
    ]["token"]
    return made


def signer(cluster: Live) -> TokenSigner:
    found = cluster.server.api.cluster.tokens
    assert isinstance(found, TokenSigner)
    return found


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("system:serviceaccount:a:b", ("a", "b")),
        ("system:serviceaccount:a:b:c", None),
        ("system:serviceaccount:A:b", None),
        ("system:serviceaccount::b", None),
        ("someone", None),
    ],
)
def test_service_account_user_names(name: str, split: tuple[str, str] | None) -> None:
    assert split_username(name) == split


def test_token_has_only_the_permissions_of_its_service_account(
    admin: Client, cluster: Live, space: str, account: Object
) -> None:
    robot = Person(cluster, token(admin, space))
    who = robot.whoami()
    assert who["username"] == f"system:serviceaccount:{space}:robot"
    assert who["uid"] == account["metadata"]["uid"]
    assert who["groups"] == [
        "system:serviceaccounts",
        f"system:serviceaccounts:{space}",
        "system:authenticated",
    ]
    assert who["extra"]["authentication.kubernetes.io/credential-id"][0].startswith("JTI=")
    assert robot.ask("GET", f"/api/v1/namespaces/{space}/secrets").status == 403
    subject = {"kind": "ServiceAccount", "name": "robot", "namespace": space}
    grant(admin, subject, {"verbs": ["list"], "apiGroups": [""], "resources": ["secrets"]}, namespace=space)
    assert robot.ask("GET", f"/api/v1/namespaces/{space}/secrets").status == 200
    assert robot.ask("GET", "/api/v1/secrets").status == 403


@pytest.mark.parametrize("again", [False, True], ids=["gone", "made anew"])
def test_token_is_invalid_after_its_account_is_deleted(
    admin: Client, cluster: Live, space: str, account: Object, again: bool
) -> None:
    robot = Person(cluster, token(admin, space))
    assert robot.ask("POST", SELF, {}).status == 201
    admin.delete(f"/api/v1/namespaces/{space}/serviceaccounts/robot")
    if again:
        admin.post(f"/api/v1/namespaces/{space}/serviceaccounts", {"metadata": {"name": "robot"}})
    assert robot.ask("POST", SELF, {}).status == 401


def test_token_is_invalid_after_its_bound_secret_is_deleted(
    admin: Client, cluster: Live, space: str, account: Object
) -> None:
    secrets = f"/api/v1/namespaces/{space}/secrets"
    admin.post(secrets, {"metadata": {"name": "s"}})
    ref = {"apiVersion": "v1", "kind": "Secret", "name": "s"}
    robot = Person(cluster, token(admin, space, boundObjectRef=ref))
    assert robot.ask("POST", SELF, {}).status == 201
    admin.delete(f"{secrets}/s")
    assert robot.ask("POST", SELF, {}).status == 401
    review = admin.post(REVIEWS, {"spec": {"token": robot.token}})
    why = "[invalid bearer token, service account token has been invalidated]"
    assert review["status"] == {"user": {}, "error": why}


@pytest.mark.parametrize(
    ("claims", "error"),
    [
        ({"exp": 1000}, "service account token has expired"),
        ({"nbf": 1 << 40}, "service account token is not valid yet"),
        ({"iat": 1 << 40}, "service account token is issued in the future"),
        ({"iss": "https://elsewhere"}, ""),
        ({"kubernetes.io": None}, ""),
        ({"exp": "soon"}, ""),
    ],
)
def test_signed_tokens_with_invalid_claims_are_rejected(
    admin: Client, cluster: Live, space: str, account: Object, claims: Object, error: str
) -> None:
    now = int(time.time())
    good: Object = {
        "aud": ["https://kubernetes.default.svc"],
        "exp": now + 600,
        "iat": now,
        "nbf": now,
        "sub": f"system:serviceaccount:{space}:robot",
        "kubernetes.io": {
            "namespace": space,
            "serviceaccount": {"name": "robot", "uid": account["metadata"]["uid"]},
        },
    }
    assert Person(cluster, signer(cluster).sign(good)).ask("POST", SELF, {}).status == 201
    bad = signer(cluster).sign(good | claims)
    assert Person(cluster, bad).ask("POST", SELF, {}).status == 401
    told = admin.post(REVIEWS, {"spec": {"token": bad}})["status"]["error"]
    assert told == (f"[invalid bearer token, {error}]" if error else "invalid bearer token")


def test_foreign_signature_is_rejected(admin: Client, cluster: Live, space: str, account: Object) -> None:
    good = token(admin, space)
    head, body, signature = good.split(".")
    for wrong in (
        f"{head}.{body}.{signature[:-4]}AAAA",
        f"{head}.{body}.",
        f"{head}..{signature}",
        f"{head}.{body}",
    ):
        assert Person(cluster, wrong).ask("POST", SELF, {}).status == 401
    unsigned = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode()
    assert Person(cluster, f"{unsigned}.{body}.").ask("POST", SELF, {}).status == 401


def test_token_for_other_audiences_is_valid_only_in_a_review(
    admin: Client, cluster: Live, space: str, account: Object
) -> None:
    vault = token(admin, space, audiences=["vault"])
    assert Person(cluster, vault).ask("POST", SELF, {}).status == 401
    review = admin.post(REVIEWS, {"spec": {"token": vault, "audiences": ["x", "vault"]}})
    assert review["status"]["authenticated"] and review["status"]["audiences"] == ["vault"]


def test_legacy_token_is_valid_while_its_secret_exists(
    admin: Client, cluster: Live, space: str, account: Object
) -> None:
    prefix = "kubernetes.io/serviceaccount"
    old = signer(cluster).sign(
        {
            "iss": LEGACY_ISSUER,
            "sub": f"system:serviceaccount:{space}:robot",
            f"{prefix}/namespace": space,
            f"{prefix}/secret.name": "old",
            f"{prefix}/service-account.name": "robot",
            f"{prefix}/service-account.uid": account["metadata"]["uid"],
        }
    )
    robot = Person(cluster, old)
    assert robot.ask("POST", SELF, {}).status == 401
    secret = {
        "metadata": {"name": "old", "annotations": {"kubernetes.io/service-account.name": "robot"}},
        "type": "kubernetes.io/service-account-token",
        "data": {"token": base64.b64encode(old.encode()).decode()},
    }
    path = f"/api/v1/namespaces/{space}/secrets"
    admin.post(path, secret)
    assert robot.whoami()["username"] == f"system:serviceaccount:{space}:robot"
    assert LAST_USED in admin.get(f"{path}/old")["metadata"]["labels"]
    label = {"metadata": {"labels": {"kubernetes.io/legacy-token-invalid-since": "2020-01-01"}}}
    admin.patch(f"{path}/old", label)
    assert robot.ask("POST", SELF, {}).status == 401


def test_openid_discovery_of_the_service_account_issuer(admin: Client, cluster: Live) -> None:
    found = admin.get("/.well-known/openid-configuration")
    assert found["issuer"] == "https://kubernetes.default.svc"
    assert found["jwks_uri"].endswith("/openid/v1/jwks")
    keys = admin.ask("GET", "/openid/v1/jwks")
    assert keys.headers["Content-Type"] == "application/jwk-set+json"
    assert keys.json["keys"][0]["use"] == "sig"
    picky = Person(cluster, "admin-token", Accept="application/json")
    assert picky.ask("GET", "/openid/v1/jwks").status == 406
    assert admin.ask("POST", "/openid/v1/jwks").status == 405
