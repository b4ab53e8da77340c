"""Servers that this server calls: a certificate in a CA file or bundle is trusted, even if it is no authority."""

from __future__ import annotations

import base64
import contextlib
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
import yaml
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from kubist.api.aggregation import backend
from kubist.api.filters.authentication.claims import ClaimMapping
from kubist.api.filters.authentication.oidc import OIDC, Issuer
from kubist.api.filters.kubeconfig import read_kubeconfig
from kubist.api.webhooks.client import trust
from kubist.base.http.tls.certificates import Pair, save
from tests.filters.certs import authority, make

NAMES = (x509.SubjectAlternativeName([x509.DNSName("a.example")]), False)


def webhook(pem: Path) -> ssl.SSLContext:
    return trust(base64.b64encode(pem.read_bytes()).decode())


def aggregated(pem: Path) -> ssl.SSLContext:
    return backend._newest_context(base64.b64encode(pem.read_bytes()).decode(), False, "", "")


def kubeconfig(pem: Path) -> ssl.SSLContext:
    cluster = {"server": "https://a.example", "certificate-authority": str(pem)}
    config = {
        "clusters": [{"name": "c", "cluster": cluster}],
        "contexts": [{"name": "x", "context": {"cluster": "c"}}],
        "current-context": "x",
    }
    file = pem.with_suffix(".yaml")
    file.write_text(yaml.safe_dump(config))
    return read_kubeconfig(str(file)).context


def oidc(pem: Path) -> ssl.SSLContext:
    mapping = cast("ClaimMapping", None)
    issuer = Issuer("https://a.example", ("client",), mapping, certificate_authority=pem.read_text())
    return OIDC(issuer, ()).keys._context


def connect(context: ssl.SSLContext, server: ssl.SSLContext) -> None:
    there, here = ssl.MemoryBIO(), ssl.MemoryBIO()
    client_side = context.wrap_bio(here, there, server_hostname="a.example")
    server_side = server.wrap_bio(there, here, server_side=True)
    for _ in range(4):
        for side in (client_side, server_side):
            with contextlib.suppress(ssl.SSLWantReadError):
                side.do_handshake()
    assert client_side.version()


@pytest.mark.parametrize("trusting", [webhook, aggregated, kubeconfig, oidc])
@pytest.mark.parametrize("issued", [True, False], ids=["issued", "self-signed"])
def test_leaf_is_a_trust_anchor(
    tmp_path: Path, trusting: Callable[[Path], ssl.SSLContext], issued: bool
) -> None:
    leaf = make(
        "a.example",
        authority("elsewhere") if issued else None,
        ca=None,
        usages=[ExtendedKeyUsageOID.SERVER_AUTH],
        extensions=[NAMES],
    )
    pem, key = tmp_path / "leaf.crt", tmp_path / "leaf.key"
    save(Pair(leaf.pem, leaf.pair.key_pem), pem, key)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(pem, key)
    connect(trusting(pem), server)
    other = make("a.example", ca=None, usages=[ExtendedKeyUsageOID.SERVER_AUTH], extensions=[NAMES])
    pem.write_bytes(other.pem)
    with pytest.raises(ssl.SSLCertVerificationError):
        connect(trusting(pem), server)
