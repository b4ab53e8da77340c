import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from kubist.api.config import Config
from kubist.api.filters.authentication.authentication import TokenError
from kubist.api.filters.authentication.tokens import TokenSigner, jwk, key_set
from kubist.api.kinds.core.serviceaccount_token import EXTENDED_SECONDS, ServiceAccountToken
from kubist.model.meta.status import APIError

KEY = ec.generate_private_key(ec.SECP256R1())
OBJECTS = {
    ("serviceaccounts", "robot"): {"metadata": {"name": "robot", "namespace": "d", "uid": "u1"}},
    ("pods", "p"): {
        "metadata": {"name": "p", "uid": "u2"},
        "spec": {"serviceAccountName": "robot", "nodeName": "n"},
    },
    ("pods", "other"): {"metadata": {"name": "other", "uid": "u3"}, "spec": {"serviceAccountName": "else"}},
    ("secrets", "s"): {"metadata": {"name": "s", "uid": "u4"}},
}


def ask(
    spec: dict[str, Any], metadata: dict[str, Any] | None = None, **config: Any
) -> tuple[Any, Any, list[str]]:
    """Response, claims of the token, and warnings."""
    signer = TokenSigner(KEY, ["https://issuer"])
    warnings: list[str] = []
    ctx: Any = SimpleNamespace(
        name="robot",
        namespace="d",
        config=Config(**config),
        audit_annotations={},
        warn=warnings.append,
        objects=SimpleNamespace(
            tokens=signer, get=lambda resource, name, namespace="": OBJECTS.get((resource, name))
        ),
    )
    body = {"metadata": metadata or {}, "spec": {"audiences": None, "boundObjectRef": None, **spec}}
    poster = ServiceAccountToken()
    poster.default(body)
    answer = asyncio.run(poster.create(ctx, body))
    return answer, signer.verify(answer["status"]["token"]), warnings


def test_token_claims_name_the_account() -> None:
    answer, claims, _ = ask({})
    assert claims["sub"] == "system:serviceaccount:d:robot"
    assert claims["kubernetes.io"] == {"namespace": "d", "serviceaccount": {"name": "robot", "uid": "u1"}}
    assert (claims["iss"], claims["aud"]) == ("https://issuer", ["https://issuer"])
    assert claims["exp"] - claims["iat"] == 3600
    assert answer["spec"]["audiences"] == ["https://issuer"]
    assert answer["metadata"]["name"] == "robot"


def test_pod_token_names_its_node_and_is_extended() -> None:
    ref = {"kind": "Pod", "apiVersion": "v1", "name": "p"}
    answer, claims, _ = ask({"boundObjectRef": ref, "expirationSeconds": 3607})
    private = claims["kubernetes.io"]
    assert private["pod"] == {"name": "p", "uid": "u2"}
    assert private["node"] == {"name": "n"}
    assert private["warnafter"] == claims["iat"] + 3607
    assert claims["exp"] == claims["iat"] + EXTENDED_SECONDS
    assert answer["spec"]["expirationSeconds"] == 3607


def test_pod_token_extension_can_be_turned_off() -> None:
    ref = {"kind": "Pod", "apiVersion": "v1", "name": "p"}
    spec = {"boundObjectRef": ref, "expirationSeconds": 3607}
    _, claims, _ = ask(spec, service_account_extend_token_expiration=False)
    assert claims["exp"] == claims["iat"] + 3607
    assert "warnafter" not in claims["kubernetes.io"]


def test_server_limit_shortens_expiration() -> None:
    answer, claims, warnings = ask({"expirationSeconds": 9000}, service_account_max_token_expiration=1200)
    assert claims["exp"] - claims["iat"] == answer["spec"]["expirationSeconds"] == 1200
    assert warnings == ["requested expiration of 9000 seconds shortened to 1200 seconds"]


@pytest.mark.parametrize(
    ("spec", "metadata", "code"),
    [
        ({"expirationSeconds": 599}, {}, 422),
        ({"expirationSeconds": 2**32 + 1}, {}, 422),
        ({}, {"name": "other"}, 422),
        ({}, {"uid": "other"}, 409),
        ({"boundObjectRef": {"kind": "ConfigMap", "apiVersion": "v1", "name": "c"}}, {}, 400),
        ({"boundObjectRef": {"kind": "Secret", "apiVersion": "v1"}}, {}, 400),
        ({"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "absent"}}, {}, 404),
        ({"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "a/b"}}, {}, 400),
        ({"boundObjectRef": {"kind": "Secret", "apiVersion": "a/b/c", "name": "s", "uid": "x"}}, {}, 409),
        ({"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "s", "uid": "x"}}, {}, 409),
        ({"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "other"}}, {}, 400),
    ],
)
def test_invalid_requests_are_rejected(spec: dict[str, Any], metadata: dict[str, Any], code: int) -> None:
    with pytest.raises(APIError) as caught:
        ask(spec, metadata)
    assert caught.value.code == code


def test_foreign_and_modified_tokens_are_rejected() -> None:
    signer = TokenSigner(rsa.generate_private_key(65537, 2048), ["https://a", "https://old"])
    token = signer.sign({"sub": "x"})
    assert signer.verify(token)["sub"] == "x"
    header, claims, signature = token.split(".")
    stranger = TokenSigner(KEY, ["https://a"]).sign({"sub": "x"})
    for bad in ("", "a.b.c", f"{header}.{claims}.", f"{header}.{claims[:-2]}AA.{signature}", stranger):
        with pytest.raises(TokenError):
            signer.verify(bad)
    with pytest.raises(TokenError, match="expired"):
        signer.verify(signer.sign({"exp": 1000}))
    with pytest.raises(TokenError, match="not valid yet"):
        signer.verify(signer.sign({"nbf": 99999999999}))


def test_published_key_ids_match_tokens() -> None:
    (key,) = key_set([KEY.public_key()]).jwks()["keys"]
    assert (key["kty"], key["alg"], key["crv"]) == ("EC", "ES256", "P-256")
    assert list(key) == ["use", "kty", "kid", "crv", "alg", "x", "y"]


def test_rsa_key_fields_have_the_reference_order() -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048).public_key()
    assert list(jwk(key)) == ["use", "kty", "kid", "alg", "n", "e"]
