"""`--authentication-config`: JWT authenticators with claims and CEL, anonymous requests by path, reloading."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from kubist.api.filters import config_file
from kubist.api.filters.authentication import configuration as authenticationconfig
from kubist.api.filters.authentication import tokens
from kubist.api.filters.authentication.authentication import TokenError
from kubist.api.filters.authentication.oidc import OIDC
from kubist.api.filters.authentication.tokens import TokenSigner
from kubist.model.meta.object import Object
from tests.filters.askers import Person, Remote, ask
from tests.filters.authentication_documents import VALID, document
from tests.live import Live, Pki
from tests.waiting import wait_for

SELF = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
KEY = rsa.generate_private_key(65537, 2048)


class Provider:
    """An issuer, and configurations that trust it."""

    def __init__(self, remote: Remote, pki: Pki) -> None:
        self.remote, self.pki = remote, pki
        self.signer = TokenSigner(KEY, [remote.url])
        remote.answers["/.well-known/openid-configuration"] = lambda _: {
            "issuer": remote.url,
            "jwks_uri": f"{remote.url}/keys",
        }
        remote.answers["/keys"] = lambda _: self.signer.keys.jwks()

    def token(self, **claims: Any) -> str:
        good: Object = {"aud": "me", "sub": "7", "exp": int(time.time()) + 600}
        return self.signer.sign(good | claims)

    def jwt(self, issuer: Object | None = None, **changes: Any) -> Object:
        about = {
            "url": self.remote.url,
            "audiences": ["me"],
            "certificateAuthority": self.pki.path("ca.crt").read_text(),
            **(issuer or {}),
        }
        username = {"claim": "sub", "prefix": ""}
        return {"issuer": about, "claimMappings": {"username": username}, **changes}


@pytest.fixture
def provider(remote: Remote, server_pki: Pki) -> Provider:
    return Provider(remote, server_pki)


async def _user(jwt: Object, token: str) -> Any:
    found = authenticationconfig.parse(document(jwt).encode(), ())
    known = await OIDC(found.issuers[0], ()).authenticate(token, ())
    return known and known[0]


@pytest.mark.parametrize(
    ("mappings", "claims", "name", "groups", "uid", "extra"),
    [
        ({"username": {"claim": "sub", "prefix": "x:"}}, {}, "x:7", [], "", {}),
        (
            {
                "username": {"claim": "sub", "prefix": ""},
                "groups": {"claim": "g", "prefix": "o:"},
                "uid": {"claim": "u"},
            },
            {"g": ["a", "b"], "u": "1"},
            "7",
            ["o:a", "o:b"],
            "1",
            {},
        ),
        (
            {
                "username": {"expression": "claims.sub + ':x'"},
                "groups": {"expression": "claims.roles.split(',')"},
                "uid": {"expression": "string(claims.n)"},
                "extra": [{"key": "example.com/team", "valueExpression": "claims.team"}],
            },
            {"roles": "a,,b", "n": 5, "team": ["red", ""]},
            "7:x",
            ["a", "b"],
            "5",
            {"example.com/team": ("red",)},
        ),
        ({"username": {"expression": "claims.a__dot__b"}}, {"a.b": "dotted"}, "dotted", [], "", {}),
        ({"username": {"expression": "claims.in.a__dot__b[0]"}}, {"in": {"a.b": ["x"]}}, "x", [], "", {}),
        (
            {"username": {"expression": "claims.sub"}, "groups": {"expression": "claims.?g.orValue([])"}},
            {},
            "7",
            [],
            "",
            {},
        ),
        ({"username": {"claim": "sub", "prefix": ""}}, {"jti": "j"}, "7", [], "", {"credential": "JTI=j"}),
    ],
)
def test_claim_mappings_define_the_user(
    shared_live: Live,
    provider: Provider,
    mappings: Object,
    claims: Object,
    name: str,
    groups: list[str],
    uid: str,
    extra: Object,
) -> None:
    if "in" in claims:
        mappings["username"]["expression"] = "claims.__in__.a__dot__b[0]"
    user = shared_live.run(_user(provider.jwt(claimMappings=mappings), provider.token(**claims)))
    assert (user.name, user.uid) == (name, uid)
    assert list(user.groups) == [*groups, "system:authenticated"]
    if "credential" in extra:
        extra = {"authentication.kubernetes.io/credential-id": (extra["credential"],)}
    assert dict(user.extra) == extra


@pytest.mark.parametrize(
    ("changes", "claims", "why"),
    [
        ({}, {"aud": "other"}, 'oidc: expected audience "me" got ["other"]'),
        (
            {"issuer": {"audiences": ["a", "b"], "audienceMatchPolicy": "MatchAny"}},
            {},
            'in ["a" "b"] got ["me"]',
        ),
        (
            {"claimValidationRules": [{"claim": "hd", "requiredValue": "x"}]},
            {},
            "required claim hd not present",
        ),
        (
            {"claimValidationRules": [{"claim": "hd", "requiredValue": "x"}]},
            {"hd": "y"},
            "required claim hd value does not match. Got = y, want = x",
        ),
        ({"claimValidationRules": [{"claim": "hd", "requiredValue": "x"}]}, {"hd": 1}, "parse claim hd"),
        (
            {"claimValidationRules": [{"expression": "claims.hd == 'x'", "message": "wrong house"}]},
            {"hd": "y"},
            "validation expression 'claims.hd == 'x'' failed: wrong house",
        ),
        (
            {"claimValidationRules": [{"expression": "claims.hd == 'x'"}]},
            {},
            "expression 'claims.hd == 'x'' resulted in error: no such key: hd",
        ),
        (
            {
                "claimValidationRules": [
                    {"expression": "claims.exp - claims.nbf <= 60", "message": "too long"}
                ]
            },
            {"nbf": 1},
            "failed: too long",
        ),
        (
            {
                "userValidationRules": [
                    {"expression": "!user.username.startsWith('7')", "message": "no seven"}
                ]
            },
            {},
            "error evaluating user info validation rule: validation expression",
        ),
        (
            {"claimMappings": {"username": {"expression": "claims.n"}}},
            {"n": 1},
            "username claim expression must return a string",
        ),
        ({"claimMappings": {"username": {"expression": "claims.n"}}}, {"n": ""}, "oidc: empty username"),
        (
            {
                "claimMappings": {
                    "username": {"expression": "claims.sub"},
                    "groups": {"expression": "claims.g"},
                }
            },
            {"g": [1]},
            "expression must return a string or a list of strings",
        ),
        (
            {"claimMappings": {"username": {"claim": "email", "prefix": ""}}},
            {"email": "a@b", "email_verified": False},
            "email not verified",
        ),
        ({"claimMappings": {"username": {"claim": "name", "prefix": ""}}}, {}, "claim not present"),
    ],
)
def test_tokens_that_fail_validation_rules_are_rejected(
    shared_live: Live, provider: Provider, changes: Object, claims: Object, why: str
) -> None:
    issuer = changes.pop("issuer", None)
    jwt = provider.jwt(issuer, **changes)
    with pytest.raises(TokenError) as error:
        shared_live.run(_user(jwt, provider.token(**claims)))
    assert why in str(error.value)


def test_discovery_url_replaces_the_issuer_url(shared_live: Live, provider: Provider) -> None:
    answers = provider.remote.answers
    answers["/elsewhere"] = answers.pop("/.well-known/openid-configuration")
    jwt = provider.jwt({"discoveryURL": f"{provider.remote.url}/elsewhere"})
    assert shared_live.run(_user(jwt, provider.token())).name == "7"


def test_anonymous_requests_are_allowed_by_path(server_pki: Pki, tmp_path: Path) -> None:
    file = tmp_path / "authentication.yaml"
    file.write_text(document(anonymous={"enabled": True, "conditions": [{"path": "/livez"}]}))
    with Live(server_pki, authentication_config=str(file)) as live:
        assert ask(live, "GET", "/livez").status == 200
        for path in ("/readyz", "/livez/etcd", "/version", "/api/v1/namespaces", "/%6civez"):
            assert ask(live, "GET", path).status == 401, path
        assert ask(live, "GET", "/readyz", "admin-token").status == 200
        live.client.close()
    file.write_text(document(anonymous={"enabled": False}))
    with Live(server_pki, authentication_config=str(file)) as live:
        assert ask(live, "GET", "/livez").status == 401
        live.client.close()


def test_file_changes_are_loaded(
    server_pki: Pki, provider: Provider, tmp_path: Path, monkeypatch: Any, caplog: Any
) -> None:
    monkeypatch.setattr(config_file, "INTERVAL", 0.02)
    monkeypatch.setattr(authenticationconfig, "READY_WITHIN", 0.2)
    file = tmp_path / "authentication.yaml"
    file.write_text(document())
    with Live(server_pki, authentication_config=str(file)) as live:

        def status() -> int:
            return Person(live, provider.token()).ask("POST", SELF, {}).status

        assert status() == 401
        file.write_text(document(provider.jwt()))
        wait_for(lambda: status() == 201)
        for wrong in (
            document(provider.jwt({"url": "http://a"})),
            document(provider.jwt(), anonymous={"enabled": True}),
            "junk",
            document(provider.jwt({"url": "https://127.0.0.1:1"})),
        ):
            caplog.clear()
            file.write_text(wrong)
            wait_for(lambda: "keeping the old authentication configuration" in caplog.text)
            assert status() == 201
        file.unlink()
        wait_for(lambda: "cannot be read" in caplog.text)
        assert status() == 201
        username = {"claim": "sub", "prefix": "new:"}
        file.write_text(document(provider.jwt(claimMappings={"username": username})))
        wait_for(lambda: Person(live, provider.token()).whoami()["username"] == "new:7")
        file.write_text(document())
        wait_for(lambda: status() == 401)
        live.client.close()


def test_file_and_flags_exclude_each_other(server_pki: Pki, tmp_path: Path) -> None:
    file = tmp_path / "authentication.yaml"
    file.write_text(document(VALID))
    flags = {"oidc_issuer_url": "https://a", "oidc_client_id": "me", "authentication_config": str(file)}
    with pytest.raises(ValueError, match="are mutually exclusive"):
        Live(server_pki, **flags)


def test_deeply_nested_claims_are_accepted(shared_live: Live, provider: Provider) -> None:
    """The JSON parser accepts deeper nesting than Python's stack."""
    jwt = provider.jwt(claimMappings={"username": {"expression": "claims.sub"}})
    for depth in (100, 1010, 1020):
        deep = "[" * depth + "]" * depth
        good = json.dumps(
            {"iss": provider.remote.url, "aud": "me", "sub": "7", "exp": int(time.time()) + 600}
        )
        token = signed(provider.signer, provider.signer.sign({}), f'{good[:-1]},"deep":{deep}}}')
        if depth < 1000:
            assert shared_live.run(_user(jwt, token)).name == "7"
        else:
            with pytest.raises(TokenError, match="invalid bearer token"):
                shared_live.run(_user(jwt, token))


def signed(signer: TokenSigner, like: str, claims: str) -> str:
    """Token with claims given as text, and the header of another token."""
    payload = base64.urlsafe_b64encode(claims.encode()).rstrip(b"=").decode()
    data = f"{like.partition('.')[0]}.{payload}"
    return f"{data}.{base64.urlsafe_b64encode(tokens._sign(signer.key, data.encode())).rstrip(b'=').decode()}"
