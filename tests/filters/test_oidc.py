"""OpenID Connect with a real issuer: discovery, keys, claims, prefixes."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from kubist.api.config import Config
from kubist.api.filters.authentication import oidc
from kubist.api.filters.authentication.authentication import TokenError
from kubist.api.filters.authentication.jwt_config import issuer_of_flags
from kubist.api.filters.authentication.oidc import OIDC
from kubist.api.filters.authentication.tokens import TokenSigner
from kubist.model.meta.object import Object
from tests.filters.askers import Person, Remote
from tests.live import Live, Pki

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
        """Issuer of the flags: `username_claim` stands for `--oidc-username-claim`."""
        flags = {"issuer_url": self.remote.url, "client_id": "me", "ca_file": str(self.pki.path("ca.crt"))}
        named = {f"oidc_{name}": value for name, value in (flags | settings).items()}
        return OIDC(issuer_of_flags(Config(**named)), ())


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
            {"required_claim": {"hd": "example.com"}, "username_prefix": "-"},
            {"hd": "example.com"},
            "7",
            [],
        ),
        ({"username_prefix": "-"}, {"aud": ["other", "me"]}, "7", []),
    ],
)
def test_claims_map_to_a_user(
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
        ({"required_claim": {"hd": "example.com"}}, {"hd": "example.org"}),
        ({"groups_claim": "g"}, {"g": [1]}),
        ({"signing_algs": ("ES256",)}, {}),
    ],
)
def test_invalid_tokens_are_rejected(
    shared_live: Live, provider: Provider, settings: Object, claims: Object
) -> None:
    with pytest.raises(TokenError):
        known(shared_live, provider.authenticator(**settings), provider.token(**claims))


def test_tokens_of_other_issuers_are_ignored(shared_live: Live, provider: Provider) -> None:
    assert known(shared_live, provider.authenticator(), provider.token(iss="https://elsewhere")) is None
    assert known(shared_live, provider.authenticator(), "opaque") is None


def test_issuer_alias_is_accepted(shared_live: Live, provider: Provider, monkeypatch: Any) -> None:
    monkeypatch.setitem(oidc.ALIASES, "old.example.com", provider.remote.url)
    assert known(shared_live, provider.authenticator(), provider.token(iss="old.example.com"))


def test_new_key_of_the_issuer_is_fetched(shared_live: Live, provider: Provider, monkeypatch: Any) -> None:
    monkeypatch.setattr("kubist.api.filters.authentication.oidc.REFETCH_AFTER", -1.0)
    authenticator = provider.authenticator(signing_algs=("RS256", "ES256"))
    assert known(shared_live, authenticator, provider.token())
    provider.change_key(ec.generate_private_key(ec.SECP256R1()))
    assert known(shared_live, authenticator, provider.token())


def test_unreachable_issuer_is_retried(shared_live: Live, provider: Provider, monkeypatch: Any) -> None:
    monkeypatch.setattr("kubist.api.filters.authentication.oidc.REFETCH_AFTER", -1.0)
    answers = provider.remote.answers
    keys = answers.pop("/keys")
    authenticator = provider.authenticator()
    with pytest.raises(TokenError, match="not initialized"):
        known(shared_live, authenticator, provider.token())
    answers["/keys"] = keys
    assert known(shared_live, authenticator, provider.token())


class Hang:
    """Makes the issuer's keys hang until `release`."""

    def __init__(self, provider: Provider) -> None:
        self.asked, self.begun, self._open = 0, threading.Event(), threading.Event()
        answer = provider.remote.answers["/keys"]

        def hang(body: Object) -> Any:
            self.asked += 1
            self.begun.set()
            self._open.wait(20)
            return answer(body)

        provider.remote.answers["/keys"] = hang

    def release(self) -> None:
        self._open.set()


async def _outcome(authenticator: OIDC, token: str) -> str:
    try:
        return "known" if await authenticator.authenticate(token, ()) else "not mine"
    except TokenError as error:
        return str(error)


def test_hanging_issuer_delays_only_tokens_of_unknown_keys(
    shared_live: Live, provider: Provider, monkeypatch: Any
) -> None:
    monkeypatch.setattr("kubist.api.filters.authentication.oidc.REFETCH_AFTER", -1.0)
    monkeypatch.setattr("kubist.api.filters.authentication.oidc.WAITING_LIMIT", 3)
    authenticator = provider.authenticator()
    good = provider.token()
    assert known(shared_live, authenticator, good)
    hang = Hang(provider)
    stranger = TokenSigner(rsa.generate_private_key(65537, 2048), [provider.remote.url])
    odd = stranger.sign({"aud": "me", "sub": "7", "exp": int(time.time()) + 600})

    async def scene() -> tuple[list[str], list[str], list[str]]:
        waiting = [asyncio.ensure_future(_outcome(authenticator, odd)) for _ in range(3)]
        assert await asyncio.to_thread(hang.begun.wait, 10)
        others = [await asyncio.wait_for(_outcome(authenticator, good), 5) for _ in range(20)]
        refused = [await asyncio.wait_for(_outcome(authenticator, odd), 5) for _ in range(5)]
        assert not any(task.done() for task in waiting)
        hang.release()
        return others, refused, await asyncio.gather(*waiting)

    others, refused, waited = shared_live.run(scene())
    assert others == ["known"] * 20, "known keys are not held up"
    assert refused == ["oidc: verify token: failed to verify signature"] * 5, "no more than three wait"
    assert set(waited) == {"oidc: verify token: failed to verify signature"}
    assert hang.asked == 1, "one fetch serves all"


def test_wait_for_a_hanging_issuer_times_out(shared_live: Live, provider: Provider, monkeypatch: Any) -> None:
    monkeypatch.setattr("kubist.api.filters.authentication.oidc.WAIT", 0.05)
    hang = Hang(provider)
    authenticator = provider.authenticator()
    try:
        assert "not initialized" in shared_live.run(_outcome(authenticator, provider.token()))
    finally:
        hang.release()
    while shared_live.run(_outcome(authenticator, provider.token())) != "known":
        time.sleep(0.01)
    assert hang.asked == 1, "the fetch goes on after those who waited have left"


def test_failed_fetches_back_off(shared_live: Live, provider: Provider, monkeypatch: Any) -> None:
    now = [1000.0]
    monkeypatch.setattr("kubist.api.filters.authentication.oidc.monotonic", lambda: now[0])
    provider.remote.answers["/keys"] = lambda _: 500
    authenticator = provider.authenticator()
    tried = []
    for second in range(100):
        now[0] = 1000.0 + second
        before = len(provider.remote.asked)
        assert "not initialized" in shared_live.run(_outcome(authenticator, provider.token()))
        if len(provider.remote.asked) > before:
            tried.append(second)
    assert tried == [0, 10, 30, 70]


def test_unreadable_key_is_skipped(shared_live: Live, provider: Provider) -> None:
    good = provider.signer.keys.jwks()["keys"]
    odd = [{"kty": "RSA", "kid": ["a"]}, {"kty": "RSA", "n": 1, "e": []}, 5, {"kty": "oct", "k": "AA"}]
    provider.remote.answers["/keys"] = lambda _: {"keys": [*odd, *good]}
    assert known(shared_live, provider.authenticator(), provider.token())


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        ({"url": "http://example.com"}, "URL scheme must be https"),
        ({"client": ""}, "issuer.audiences: Required value"),
        ({"url": "https://kubernetes.default.svc"}, "URL must not overlap with disallowed issuers"),
        ({"algs": ("HS256",)}, 'unsupported signing alg: "HS256"'),
    ],
)
def test_invalid_oidc_flags_are_rejected(flags: Object, why: str) -> None:
    config = Config(
        oidc_issuer_url=flags.get("url", "https://example.com"),
        oidc_client_id=flags.get("client", "me"),
        oidc_signing_algs=flags.get("algs", ("RS256",)),
        service_account_issuer=("https://kubernetes.default.svc",),
    )
    with pytest.raises(ValueError, match="--oidc-.*" + re.escape(why)):
        issuer_of_flags(config)


def test_oidc_flags_configure_the_server(server_pki: Pki, provider: Provider) -> None:
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
