"""OpenID Connect with a real issuer: discovery, keys, claims, prefixes."""

from __future__ import annotations

import time
from typing import Any

import pytest
from askers import Object, Person, Remote
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from kubist.filters.authentication import TokenError
from kubist.filters.oidc import OIDC, Issuer
from kubist.filters.tokens import TokenSigner
from live import Live, Pki

SELF = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


class Provider:
    """An issuer with a key, and the server that trusts it."""

    def __init__(self, remote: Remote, pki: Pki) -> None:
        self.remote, self.pki = remote, pki
        self.change_key(rsa.generate_private_key(65537, 2048))
        remote.answers["/.well-known/openid-configuration"] = lambda _: {
            "issuer": remote.url,
            "jwks_uri": f"{remote.url}/keys",
        }
        remote.answers["/keys"] = lambda _: self.signer.keys.jwks()

    def change_key(self, key: Any) -> None:
        self.signer = TokenSigner(key, [self.remote.url])

    def token(self, **claims: Any) -> str:
        good: Object = {"aud": "me", "sub": "7", "exp": int(time.time()) + 600}
        return self.signer.sign(good | claims)

    def authenticator(self, **settings: Any) -> OIDC:
        return OIDC(Issuer(self.remote.url, "me", str(self.pki.path("ca.crt")), **settings), ())


@pytest.fixture
def provider(remote: Remote, server_pki: Pki) -> Provider:
    return Provider(remote, server_pki)


async def _known(authenticator: OIDC, token: str) -> Any:
    found = await authenticator.authenticate(token, ())
    return found and found[0]


def known(live: Live, authenticator: OIDC, token: str) -> Any:
    return live.run(_known(authenticator, token))


@pytest.mark.parametrize(
    ("settings", "claims", "name", "groups"),
    [
        ({}, {}, "ISSUER#7", []),
        ({"username_prefix": "-"}, {}, "7", []),
        ({"username_prefix": "x:"}, {}, "x:7", []),
        ({"username_claim": "email"}, {"email": "jo@example.com"}, "jo@example.com", []),
        ({"groups_claim": "g", "username_prefix": "-"}, {"g": ["a", "b"]}, "7", ["a", "b"]),
        (
            {"groups_claim": "g", "groups_prefix": "oidc:", "username_prefix": "-"},
            {"g": "a"},
            "7",
            ["oidc:a"],
        ),
        (
            {"required_claims": (("hd", "example.com"),), "username_prefix": "-"},
            {"hd": "example.com"},
            "7",
            [],
        ),
        ({"username_prefix": "-"}, {"aud": ["other", "me"]}, "7", []),
    ],
)
def test_claims_make_a_user(
    shared_live: Live, provider: Provider, settings: Object, claims: Object, name: str, groups: list[str]
) -> None:
    user = known(shared_live, provider.authenticator(**settings), provider.token(**claims))
    assert user.name == name.replace("ISSUER", provider.remote.url)
    assert list(user.groups) == [*groups, "system:authenticated"]


@pytest.mark.parametrize(
    ("settings", "claims"),
    [
        ({}, {"aud": "other"}),
        ({}, {"exp": 1000}),
        ({}, {"exp": None}),
        ({"username_claim": "name"}, {}),
        ({"username_claim": "email"}, {"email": "jo@example.com", "email_verified": False}),
        ({"required_claims": (("hd", "example.com"),)}, {"hd": "example.org"}),
        ({"groups_claim": "g"}, {"g": [1]}),
        ({"signing_algs": ("ES256",)}, {}),
    ],
)
def test_refused_tokens(shared_live: Live, provider: Provider, settings: Object, claims: Object) -> None:
    with pytest.raises(TokenError):
        known(shared_live, provider.authenticator(**settings), provider.token(**claims))


def test_tokens_of_others_are_left_to_others(shared_live: Live, provider: Provider) -> None:
    assert known(shared_live, provider.authenticator(), provider.token(iss="https://elsewhere")) is None
    assert known(shared_live, provider.authenticator(), "opaque") is None


def test_new_key_of_the_issuer_is_found(shared_live: Live, provider: Provider, monkeypatch: Any) -> None:
    monkeypatch.setattr("kubist.filters.oidc.REFETCH_AFTER", -1.0)
    authenticator = provider.authenticator(signing_algs=("RS256", "ES256"))
    assert known(shared_live, authenticator, provider.token())
    provider.change_key(ec.generate_private_key(ec.SECP256R1()))
    assert known(shared_live, authenticator, provider.token())


def test_unreachable_issuer_is_asked_again(shared_live: Live, provider: Provider) -> None:
    answers = provider.remote.answers
    keys = answers.pop("/keys")
    authenticator = provider.authenticator()
    with pytest.raises(TokenError, match="not initialized"):
        known(shared_live, authenticator, provider.token())
    answers["/keys"] = keys
    assert known(shared_live, authenticator, provider.token())


@pytest.mark.parametrize(("url", "client"), [("http://example.com", "me"), ("https://example.com", "")])
def test_flags_that_make_no_sense(url: str, client: str) -> None:
    with pytest.raises(ValueError, match="--oidc"):
        Issuer(url, client)


def test_flags_make_a_server_believe_the_issuer(server_pki: Pki, provider: Provider) -> None:
    flags = {
        "oidc_issuer_url": provider.remote.url,
        "oidc_client_id": "me",
        "oidc_ca_file": str(server_pki.path("ca.crt")),
        "oidc_groups_claim": "groups",
        "oidc_required_claim": {"hd": "example.com"},
    }
    with Live(server_pki, **flags) as live:
        good = Person(live, provider.token(groups=["a"], hd="example.com"))
        info = good.whoami()
        assert info["username"] == f"{provider.remote.url}#7"
        assert info["groups"] == ["a", "system:authenticated"]
        assert Person(live, provider.token()).ask("POST", SELF, {}).status == 401
        live.client.close()
