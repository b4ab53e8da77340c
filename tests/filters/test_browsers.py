"""Headers for browsers, and connection flags: CORS, HSTS, TLS versions and ciphers, HTTP/2."""

from __future__ import annotations

import socket
import ssl
from typing import Any

import pytest

from kubist.model.meta.object import Object
from kubist.server.serving_tls import SUITES, openssl_ciphers
from tests.live import Live, Pki

ORIGIN = r"^https://(www\.)?example\.com$"


def ask(live: Live, method: str, path: str, **headers: str) -> Any:
    connection = live.client.connect()
    connection.request(
        method, path, headers={name.replace("_", "-"): value for name, value in headers.items()}
    )
    response = connection.getresponse()
    response.read()
    connection.close()
    return response


@pytest.fixture(scope="module")
def live(server_pki: Pki) -> Any:
    flags = {
        "cors_allowed_origins": (ORIGIN, "//localhost(:|$)"),
        "strict_transport_security_directives": ("max-age=31536000", "includeSubDomains"),
    }
    with Live(server_pki, **flags) as running:
        yield running


@pytest.mark.parametrize(
    "origin", ["https://example.com", "https://www.example.com", "http://localhost:8080"]
)
def test_allowed_origin_gets_cors_headers(live: Live, origin: str) -> None:
    answer = ask(live, "GET", "/version", Origin=origin)
    assert answer.status == 200
    assert answer.getheader("Access-Control-Allow-Origin") == origin
    assert answer.getheader("Access-Control-Allow-Credentials") == "true"
    assert "PATCH" in answer.getheader("Access-Control-Allow-Methods")


@pytest.mark.parametrize("origin", ["https://example.com.attacker.org", "https://attacker.org", "", "null"])
def test_other_origins_get_no_cors_headers(live: Live, origin: str) -> None:
    answer = ask(live, "GET", "/version", Origin=origin)
    assert answer.status == 200
    assert answer.getheader("Access-Control-Allow-Origin") is None


def test_preflight_needs_no_credentials_and_gives_no_access(live: Live) -> None:
    path = "/api/v1/namespaces/default/secrets"
    assert ask(live, "OPTIONS", path, Origin="https://example.com").status == 204
    assert ask(live, "OPTIONS", path, Origin="https://attacker.org").status != 204
    answer = ask(live, "GET", path, Origin="https://example.com")
    assert answer.status == 403 and answer.getheader("Access-Control-Allow-Origin") == "https://example.com"


def test_hsts_header_is_in_every_response_once(live: Live) -> None:
    for path, status in (("/version", 200), ("/nothing", 403), ("/apis//", 403), ("/version", 200)):
        answer = ask(live, "GET", path)
        assert answer.status == status
        told = [value for name, value in answer.getheaders() if name == "Strict-Transport-Security"]
        assert told == ["max-age=31536000; includeSubDomains"]


def test_no_headers_without_the_flags(shared_live: Live) -> None:
    answer = ask(shared_live, "GET", "/version", Origin="https://example.com")
    assert answer.getheader("Access-Control-Allow-Origin") is None
    assert answer.getheader("Strict-Transport-Security") is None


def handshake(live: Live, pki: Pki, version: ssl.TLSVersion, ciphers: str = "") -> tuple[str, str] | None:
    """Version and cipher negotiated with a client that offers one TLS version; None if the handshake fails."""
    context = ssl.create_default_context(cafile=str(pki.path("ca.crt")))
    context.minimum_version = context.maximum_version = version
    if ciphers:
        context.set_ciphers(ciphers)
    try:
        with (
            socket.create_connection(("127.0.0.1", live.server.port), 10) as raw,
            context.wrap_socket(raw, server_hostname="localhost") as tls,
        ):
            cipher = tls.cipher()
            assert cipher is not None
            return str(tls.version()), cipher[0]
    except (ssl.SSLError, ConnectionError):
        return None


TLS12, TLS13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3


def test_minimum_version(server_pki: Pki, shared_live: Live) -> None:
    assert handshake(shared_live, server_pki, TLS12) is not None
    with Live(server_pki, tls_min_version="VersionTLS13") as live:
        assert handshake(live, server_pki, TLS12) is None
        agreed = handshake(live, server_pki, TLS13)
        assert agreed is not None and agreed[0] == "TLSv1.3"


def test_only_the_configured_ciphers_are_accepted(server_pki: Pki) -> None:
    names = ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384")
    with Live(server_pki, tls_cipher_suites=names) as live:
        agreed = handshake(live, server_pki, TLS12)
        assert agreed is not None and agreed[1] in [SUITES[name] for name in names]
        assert (
            handshake(live, server_pki, TLS12, "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256")
            is None
        )
        assert handshake(live, server_pki, TLS13) is not None


def test_openssl_knows_every_suite() -> None:
    for name in SUITES:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_ciphers(openssl_ciphers((name,)))
        assert SUITES[name] in [cipher["name"] for cipher in context.get_ciphers()]


def test_stream_limit_is_sent_to_clients(server_pki: Pki) -> None:
    with Live(server_pki, http2_max_streams_per_connection=7) as live:
        context = ssl.create_default_context(cafile=str(server_pki.path("ca.crt")))
        context.set_alpn_protocols(["h2"])
        with (
            socket.create_connection(("127.0.0.1", live.server.port), 10) as raw,
            context.wrap_socket(raw, server_hostname="localhost") as tls,
        ):
            tls.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes.fromhex("000000040000000000"))
            received = b""
            while len(received) < 9 or len(received) < 9 + int.from_bytes(received[:3], "big"):
                received += tls.recv(4096)
    settings = received[9 : 9 + int.from_bytes(received[:3], "big")]
    pairs = {
        settings[at : at + 2]: int.from_bytes(settings[at + 2 : at + 6], "big")
        for at in range(0, len(settings), 6)
    }
    assert pairs[b"\0\x03"] == 7


@pytest.mark.parametrize(
    ("flags", "uri"),
    [
        ({}, "https://127.0.0.1:0/openid/v1/jwks"),
        ({"external_hostname": "api.example.com"}, "https://api.example.com:0/openid/v1/jwks"),
        ({"external_hostname": "api.example.com:443"}, "https://api.example.com:443/openid/v1/jwks"),
    ],
)
def test_external_hostname_is_in_the_jwks_uri(server_pki: Pki, flags: Object, uri: str) -> None:
    with Live(server_pki, **flags) as live:
        assert live.client.get("/.well-known/openid-configuration")["jwks_uri"] == uri


def test_shared_client_and_proxy_ca_needs_allowed_names(server_pki: Pki) -> None:
    flags = {
        "requestheader_client_ca_file": str(server_pki.path("ca.crt")),
        "requestheader_username_headers": ("X-Remote-User",),
    }
    with pytest.raises(ValueError, match="contain overlapping certificates"):
        Live(server_pki, **flags)
    with Live(server_pki, **flags, requestheader_allowed_names=("front-proxy",)) as live:
        assert live.client.ask("GET", "/version").status == 200
