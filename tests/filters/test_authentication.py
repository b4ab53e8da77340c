"""Authentication: static tokens, certificates, front proxies, bootstrap tokens, WebSockets of browsers."""

from __future__ import annotations

import base64
import http.client
import json
import re
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubist.api.config import Config
from kubist.api.filters.authentication.authentication import TokenError, TokenFile, bearer, websocket_token
from kubist.api.filters.authentication.request_header import check_flags
from kubist.base.http.tls.certificates import load_authority, new_authority, save
from kubist.model.meta.object import Object
from tests.filters.askers import Person, ask
from tests.live import TOKEN, Client, Live, Pki

TOKEN_PROTOCOL = "base64url.bearer.authorization.k8s.io."
SELF = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


@pytest.mark.parametrize(
    ("header", "token", "warned"),
    [
        ("Bearer abc", "abc", False),
        ("bearer abc", "abc", False),
        ("  Bearer abc def", "abc", False),
        ("Bearer  abc", "", True),
        ("Bearer ", "", False),
        ("Basic abc", "", False),
        ("", "", False),
    ],
)
def test_bearer_token_of_header(header: str, token: str, warned: bool) -> None:
    warnings: list[str] = []
    assert bearer(header, warnings) == token
    assert bool(warnings) is warned


def test_bearer_token_of_websocket() -> None:
    protocol = "base64url.bearer.authorization.k8s.io." + base64.urlsafe_b64encode(b"abc").decode().rstrip(
        "="
    )
    headers = {"upgrade": "websocket", "sec-websocket-protocol": f"v5.channel.k8s.io, {protocol}"}
    assert websocket_token(headers) == "abc"
    assert websocket_token({**headers, "upgrade": ""}) == ""
    empty = {**headers, "sec-websocket-protocol": "base64url.bearer.authorization.k8s.io."}
    assert websocket_token(empty) == ""


@pytest.mark.parametrize(
    ("protocols", "why"),
    [
        (f"{TOKEN_PROTOCOL}YWJj", "missing additional subprotocol"),
        (f"v5.channel.k8s.io, {TOKEN_PROTOCOL}YWJj, {TOKEN_PROTOCOL}YWJj", "multiple"),
        (f"{TOKEN_PROTOCOL}YWJj,{TOKEN_PROTOCOL}", "multiple"),
        (f"v5.channel.k8s.io,{TOKEN_PROTOCOL}Y", "invalid"),
        (f"v5.channel.k8s.io,{TOKEN_PROTOCOL}_w", "invalid"),
    ],
)
def test_websocket_needs_one_token_and_another_protocol(protocols: str, why: str) -> None:
    with pytest.raises(TokenError, match=why):
        websocket_token({"upgrade": "websocket", "sec-websocket-protocol": protocols})


@pytest.mark.parametrize("others", ["", f", v5.channel.k8s.io, {TOKEN_PROTOCOL}x"])
def test_invalid_websocket_token_is_not_anonymous(shared_live: Live, others: str) -> None:
    connection = shared_live.client.connect()
    try:
        token = base64.urlsafe_b64encode(TOKEN.encode()).decode().rstrip("=")
        headers = {
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
            "Sec-WebSocket-Protocol": f"{TOKEN_PROTOCOL}{token}{others}",
        }
        connection.request("GET", "/api/v1/namespaces/default/pods?watch=1", headers=headers)
        assert connection.getresponse().status == 401
    finally:
        connection.close()


def test_token_file_line_needs_three_columns(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("token,user\n")
    with pytest.raises(ValueError, match="at least token, user name and user uid"):
        TokenFile(str(tmp_path / "tokens"))


def test_wrong_token_is_rejected_even_for_health(cluster: Live) -> None:
    answer = ask(cluster, "GET", "/healthz", "wrong")
    assert answer.status == 401
    assert isinstance(answer.body, bytes)
    shown = json.loads(answer.body)
    assert shown["reason"] == "Unauthorized" and "details" not in shown


def test_anonymous_requests_are_rejected_when_off(server_pki: Pki) -> None:
    with Live(server_pki, anonymous_auth=False) as live:
        assert ask(live, "GET", "/healthz").status == 401
        assert ask(live, "GET", "/healthz", "dev-token").status == 200


BOOTSTRAP: Object = {
    "token-id": "abcdef",
    "token-secret": "0123456789abcdef",
    "usage-bootstrap-authentication": "true",
    "auth-extra-groups": "system:bootstrappers:workers",
}


@pytest.mark.parametrize(
    ("change", "known"),
    [
        ({}, True),
        ({"expiration": "2999-01-01T00:00:00Z"}, True),
        ({"expiration": "2020-01-01T00:00:00Z"}, False),
        ({"usage-bootstrap-authentication": "false"}, False),
        ({"token-secret": "another"}, False),
        ({"auth-extra-groups": "system:masters"}, False),
    ],
)
def test_bootstrap_token_is_valid_while_its_secret_is(
    cluster: Live, admin: Client, change: Object, known: bool
) -> None:
    secret = {
        "metadata": {"name": "bootstrap-token-abcdef", "namespace": "kube-system"},
        "type": "bootstrap.kubernetes.io/token",
        "stringData": BOOTSTRAP | change,
    }
    admin.post("/api/v1/namespaces/kube-system/secrets", secret)
    try:
        node = Person(cluster, "abcdef.0123456789abcdef")
        answer = node.ask("POST", SELF, {})
        assert answer.status == (201 if known else 401)
        if known:
            info = answer.json["status"]["userInfo"]
            assert info["username"] == "system:bootstrap:abcdef"
            assert info["groups"] == [
                "system:bootstrappers",
                "system:bootstrappers:workers",
                "system:authenticated",
            ]
    finally:
        admin.delete("/api/v1/namespaces/kube-system/secrets/bootstrap-token-abcdef")


class Proxied:
    """Server that trusts proxies of one CA and clients of another."""

    def __init__(self, live: Live, directory: Path) -> None:
        self.live, self.directory = live, directory

    def whoami(self, who: str, headers: list[tuple[str, str]]) -> tuple[int, Any]:
        context = ssl.create_default_context(cafile=str(self.live.pki.path("ca.crt")))
        context.load_cert_chain(self.directory / f"{who}.crt", self.directory / f"{who}.key")
        connection = http.client.HTTPSConnection("127.0.0.1", self.live.server.port, context=context)
        try:
            connection.putrequest("POST", SELF)
            for name, value in [*headers, ("Content-Type", "application/json"), ("Content-Length", "2")]:
                connection.putheader(name, value)
            connection.endheaders(b"{}")
            answer = connection.getresponse()
            shown = json.loads(answer.read())
            return answer.status, shown["status"]["userInfo"] if answer.status == 201 else shown
        finally:
            connection.close()


@pytest.fixture(scope="module")
def proxied(server_pki: Pki, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxied]:
    where = tmp_path_factory.mktemp("proxies")
    proxies = new_authority("proxies")
    proxies.save(where / "ca.crt", where / "ca.key")
    for name in ("front", "other"):
        save(proxies.issue_client(name, []), where / f"{name}.crt", where / f"{name}.key")
    for suffix in ("crt", "key"):
        (where / f"admin.{suffix}").write_bytes(server_pki.path(f"admin.{suffix}").read_bytes())
    flags = {
        "requestheader_client_ca_file": str(where / "ca.crt"),
        "requestheader_allowed_names": ("front",),
        "requestheader_username_headers": ("X-Remote-User",),
        "requestheader_group_headers": ("X-Remote-Group",),
        "requestheader_extra_headers_prefix": ("X-Remote-Extra-",),
    }
    with Live(server_pki, **flags) as live:
        yield Proxied(live, where)


JO = [
    ("X-Remote-User", "jo"),
    ("X-Remote-Group", "a, b"),
    ("X-Remote-Group", "c"),
    ("X-Remote-Extra-Scopes", "x"),
]


def test_front_proxy_names_the_user_in_headers(proxied: Proxied) -> None:
    status, info = proxied.whoami("front", JO)
    assert status == 201
    assert info == {
        "username": "jo",
        "groups": ["a, b", "c", "system:authenticated"],
        "extra": {"scopes": ["x"]},
    }


def test_user_headers_of_other_clients_are_ignored(proxied: Proxied) -> None:
    _, info = proxied.whoami("admin", JO)
    assert info["username"] == "admin"
    assert proxied.whoami("other", JO)[0] == 401


def test_proxy_certificate_alone_names_no_user(proxied: Proxied) -> None:
    assert proxied.whoami("front", [])[0] == 401


def test_client_certificate_names_the_user(proxied: Proxied) -> None:
    _, info = proxied.whoami("admin", [])
    assert info["groups"] == ["system:masters", "system:authenticated"]
    credential = info["extra"]["authentication.kubernetes.io/credential-id"][0]
    assert credential.startswith("X509SHA256=")


def test_only_certificates_that_nothing_accepts_are_logged_as_rejected(
    proxied: Proxied, caplog: pytest.LogCaptureFixture
) -> None:
    authority = load_authority(proxied.directory / "ca.crt", proxied.directory / "ca.key")
    save(authority.issue_client("third"), proxied.directory / "third.crt", proxied.directory / "third.key")
    caplog.set_level("INFO", "kubist.filters")
    assert proxied.whoami("admin", JO)[0] == 201
    assert proxied.whoami("front", JO)[0] == 201
    assert proxied.whoami("third", [*JO, ("Authorization", f"Bearer {TOKEN}")])[0] == 201
    assert caplog.messages == []
    assert proxied.whoami("third", JO)[0] == 401
    (message,) = caplog.messages
    assert message.startswith(
        "a client certificate was rejected: [x509: subject with cn=third is not in the allowed list, "
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"requestheader_username_headers": (" ",)}, 'empty value in "requestheader-username-headers"'),
        ({"requestheader_allowed_names": ("a", "")}, 'empty value in "requestheader-allowed-names"'),
        (
            {"requestheader_uid_headers": ("X-Subject",)},
            "--requestheader-uid-headers is set without specifying the standard X-Remote-Uid header - "
            "API aggregation will not work",
        ),
    ],
)
def test_wrong_flags_of_front_proxies_are_rejected(settings: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        check_flags(Config(**settings))


def test_header_without_the_standard_name_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    check_flags(
        Config(requestheader_group_headers=("X-Team",), requestheader_username_headers=("x-remote-user",))
    )
    (record,) = caplog.records
    assert record.message.startswith("--requestheader-group-headers is set without specifying")
