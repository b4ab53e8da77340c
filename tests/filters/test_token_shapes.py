"""Bearer tokens of any shape: accepted, or rejected with 401. The signatures are valid, so that every claim is read."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubist.api.filters.authentication import tokens
from kubist.api.filters.authentication.serviceaccounts import LEGACY_ISSUER
from kubist.api.filters.authentication.tokens import TokenSigner
from kubist.api.resources.context import User
from kubist.model.meta.object import Object
from tests.filters.askers import Person, Remote
from tests.live import Client, Live, Pki

SELF = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
DEEP = '{"a":' * 5000 + "1" + "}" * 5000
ODD_JSON = st.sampled_from(
    ["NaN", "-Infinity", "1e999", "1" + "0" * 400, '"\\ud800"', "[" * 3000 + "]" * 3000, DEEP, "1e308"]
)
ODD = (
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(width=64) | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=6,
    ).map(json.dumps)
    | ODD_JSON
)
"""JSON, and texts that some parsers accept as JSON."""
FUZZ = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))


def encode(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode(errors="surrogatepass")).rstrip(b"=").decode()


def write(value: Any, odd: dict[tuple[str, ...], str], path: tuple[str, ...] = ()) -> str:
    """JSON of a value with unusual texts at some paths, including paths that it does not have."""
    if path in odd:
        return odd[path]
    if not isinstance(value, dict):
        return json.dumps(value)
    more = {place[len(path)] for place in odd if len(place) == len(path) + 1 and place[:-1] == path}
    names = [*value, *sorted(more - value.keys())]
    inside = (f"{json.dumps(name)}:{write(value.get(name), odd, (*path, name))}" for name in names)
    return "{" + ",".join(inside) + "}"


def header_of(signer: TokenSigner) -> Object:
    first = signer.sign({}).partition(".")[0]
    header: Object = json.loads(base64.urlsafe_b64decode(first + "=" * (-len(first) % 4)))
    return header


def signed(signer: TokenSigner, header: str, claims: str) -> str:
    data = f"{encode(header)}.{encode(claims)}"
    signature = tokens._sign(signer.key, data.encode())
    return f"{data}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


def places(good: Object) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = [
        (name,) for name in ("jti", "nbf", "iat", "exp", "aud", "sub", "iss", "g")
    ]
    found += [(name,) for name in ("_claim_names", "_claim_sources", "email", "email_verified")]

    def walk(value: Any, path: tuple[str, ...]) -> None:
        found.append(path)
        if isinstance(value, dict):
            for name, inner in value.items():
                walk(inner, (*path, name))

    walk(good, ())
    return found


def odd_tokens(signer: TokenSigner, good: Object) -> st.SearchStrategy[str]:
    header = header_of(signer)

    def sign(odd_header: dict[tuple[str, ...], str], odd_claims: dict[tuple[str, ...], str]) -> str:
        return signed(signer, write(header, odd_header), write(good, odd_claims))

    in_header = st.dictionaries(
        st.sampled_from([("kid",), ("alg",), ("typ",), ("crit",), ()]), ODD, max_size=1
    )
    in_claims = st.dictionaries(st.sampled_from(places(good)), ODD, max_size=2)
    return st.builds(sign, in_header, in_claims)


@pytest.fixture(scope="module")
def remote(server_pki: Pki) -> Any:
    running = Remote(server_pki)
    yield running
    running.close()


@pytest.fixture(scope="module")
def known(server_pki: Pki, remote: Remote) -> Any:
    """Server that accepts its own tokens and those of an issuer."""
    signer = TokenSigner(tokens_key(server_pki), [remote.url])
    remote.answers["/.well-known/openid-configuration"] = lambda _: {
        "issuer": remote.url,
        "jwks_uri": f"{remote.url}/keys",
    }
    remote.answers["/keys"] = lambda _: signer.keys.jwks()
    flags = {
        "oidc_issuer_url": remote.url,
        "oidc_client_id": "me",
        "oidc_ca_file": str(server_pki.path("ca.crt")),
        "oidc_groups_claim": "g",
        "oidc_signing_algs": ("RS256", "ES256"),
    }
    with Live(server_pki, **flags) as live:
        yield live, signer


def tokens_key(pki: Pki) -> Any:
    from cryptography.hazmat.primitives import serialization

    return serialization.load_pem_private_key(pki.path("tls.key").read_bytes(), None)


def own(live: Live) -> TokenSigner:
    found = live.server.api.cluster.tokens
    assert isinstance(found, TokenSigner)
    return found


def account(live: Live) -> Object:
    """Claims of a valid token."""
    path = "/api/v1/namespaces/default/serviceaccounts/default"
    uid = live.client.get(path)["metadata"]["uid"] if live.client.ask("GET", path).status == 200 else ""
    if not uid:
        made = live.client.post(
            "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}}
        )
        uid = made["metadata"]["uid"]
    now = int(time.time())
    private = {
        "namespace": "default",
        "serviceaccount": {"name": "default", "uid": uid},
        "pod": {"name": "p", "uid": "1"},
        "node": {"name": "n", "uid": "2"},
        "secret": {"name": "s", "uid": "3"},
        "warnafter": now + 60,
    }
    return {
        "iss": "https://kubernetes.default.svc",
        "aud": ["https://kubernetes.default.svc"],
        "exp": now + 600,
        "iat": now,
        "nbf": now,
        "jti": "x",
        "sub": "system:serviceaccount:default:default",
        "kubernetes.io": private,
    }


def legacy() -> Object:
    prefix = "kubernetes.io/serviceaccount/"
    names = {"namespace": "default", "secret.name": "s", "service-account.name": "default"}
    named = {prefix + name: value for name, value in (names | {"service-account.uid": "1"}).items()}
    return {"iss": LEGACY_ISSUER, "sub": "system:serviceaccount:default:default", **named}


def openid(signer: TokenSigner) -> Object:
    return {"iss": signer.issuers[0], "aud": "me", "sub": "7", "exp": int(time.time()) + 600, "g": ["a"]}


def check(live: Live, token: str) -> None:
    """A review must have a status, and the user in it must have the declared types."""
    answer = live.run(live.server.api.authentication.review(token, ()))
    if isinstance(answer, str):
        return
    user, audiences = answer
    assert isinstance(user, User)
    texts = [user.name, user.uid, *user.groups, *audiences]
    texts += [text for key, values in user.extra for text in (key, *values)]
    assert all(isinstance(text, str) for text in texts)
    "".join(texts).encode()


@FUZZ
@given(data=st.data())
def test_service_account_tokens_of_any_shape_are_accepted_or_rejected(known: Any, data: Any) -> None:
    live, _ = known
    good = account(live) if not hasattr(live, "good") else live.good
    live.good = good
    if data.draw(st.booleans()):
        good = {**good, "kubernetes.io": {k: v for k, v in good["kubernetes.io"].items() if k != "pod"}}
    check(live, data.draw(odd_tokens(own(live), good)))


@FUZZ
@given(data=st.data())
def test_legacy_tokens_of_any_shape_are_accepted_or_rejected(known: Any, data: Any) -> None:
    live, _ = known
    check(live, data.draw(odd_tokens(own(live), legacy())))


@FUZZ
@given(data=st.data())
def test_openid_tokens_of_any_shape_are_accepted_or_rejected(known: Any, data: Any) -> None:
    live, signer = known
    check(live, data.draw(odd_tokens(signer, openid(signer))))


@FUZZ
@given(parts=st.lists(st.text(max_size=20) | ODD.map(encode), min_size=1, max_size=5))
def test_text_with_dots_is_accepted_or_rejected(known: Any, parts: list[str]) -> None:
    live, _ = known
    check(live, ".".join(parts))


def shapes(signer: TokenSigner, good: Object) -> dict[str, str]:
    header = header_of(signer)
    odd: dict[str, tuple[dict[tuple[str, ...], str], dict[tuple[str, ...], str]]] = {
        "kid is a list": ({("kid",): "[]"}, {}),
        "kid is a map": ({("kid",): "{}"}, {}),
        "alg is a list": ({("alg",): '["RS256"]'}, {}),
        "alg is a map": ({("alg",): "{}"}, {}),
        "header is deep": ({("kid",): DEEP}, {}),
        "claims are deep": ({}, {("deep",): DEEP}),
        "iss is a list": ({}, {("iss",): json.dumps([good["iss"]])}),
        "aud is a number": ({}, {("aud",): "1"}),
        "aud has numbers": ({}, {("aud",): "[1]"}),
        "aud is a map": ({}, {("aud",): "{}"}),
        "exp is text": ({}, {("exp",): '"never"'}),
        "exp is NaN": ({}, {("exp",): "NaN"}),
        "exp is huge": ({}, {("exp",): "1" + "0" * 400}),
        "exp is infinite": ({}, {("exp",): "1e999"}),
        "nbf is a list": ({}, {("nbf",): "[]"}),
        "sub is a map": ({}, {("sub",): "{}"}),
    }
    return {
        name: signed(signer, write(header, in_header), write(good, in_claims))
        for name, (in_header, in_claims) in odd.items()
    }


@pytest.mark.parametrize("issuer", ["own", "openid"])
def test_malformed_tokens_get_401_and_fail_their_review(known: Any, issuer: str) -> None:
    live, signer = known
    made = shapes(own(live), account(live)) if issuer == "own" else shapes(signer, openid(signer))
    admin: Client = live.client
    for name, token in made.items():
        assert Person(live, token).ask("POST", SELF, {}).status == 401, name
        review = admin.post(REVIEWS, {"spec": {"token": token}})
        assert not review["status"].get("authenticated"), name
        assert "invalid bearer token" in review["status"]["error"], name


def test_token_with_critical_extensions_is_rejected(known: Any) -> None:
    """A verifier must understand every header that `crit` names (RFC 7515)."""
    live, signer = known
    header, claims = header_of(signer), json.dumps(openid(signer))

    def status(header: Object) -> int:
        client = Client(live.server.port, live.pki, signed(signer, json.dumps(header), claims))
        found: int = client.ask("POST", SELF, {}).status
        client.close()
        return found

    assert status(header) == 201
    for critical in (["exp"], ["b64"], [], "exp"):
        assert status({**header, "crit": critical, "b64": False}) == 401
