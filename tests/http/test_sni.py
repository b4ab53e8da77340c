"""The server name of a handshake selects the certificate, by the rules of --tls-sni-cert-key."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509

from kubist.api.config import Config
from kubist.base.http import server_context
from kubist.base.http.tls.certificates import Pair, new_authority, save
from kubist.base.http.tls.sni import CertKey
from kubist.server.serving_tls import serving_context
from tests.http.serving import Pki, Serving, Site
from tests.waiting import wait_for

AUTHORITY = new_authority("sni")


def write(directory: Path, label: str, names: list[str]) -> tuple[str, str, Pair]:
    pair = AUTHORITY.issue_server(names)
    cert, key = directory / f"{label}.crt", directory / f"{label}.key"
    save(pair, cert, key)
    return str(cert), str(key), pair


class NamedServing:
    """Server with a default certificate and those of the flag. Labels are the names of the files."""

    def __init__(self, serving: Serving, serials: dict[int, str]) -> None:
        self._serving = serving
        self.serials = serials

    def handshake(self, name: str | None, alpn: str = "http/1.1") -> ssl.SSLSocket:
        context = ssl._create_unverified_context()
        context.set_alpn_protocols([alpn])
        raw = socket.create_connection(("127.0.0.1", self._serving.port), timeout=30)
        return context.wrap_socket(raw, server_hostname=name)

    def served(self, name: str | None) -> str:
        """Label of the certificate for a server name."""
        with self.handshake(name) as client:
            der = client.getpeercert(binary_form=True)
        assert der is not None
        return self.serials[serial(der)]


def serial(der: bytes) -> int:
    return x509.load_der_x509_certificate(der).serial_number


CERTIFICATES = {
    "exact": (["a.example.org", "both.example.org"], ""),
    "wildcard": (["*.example.org"], ""),
    "later": (["both.example.org", "later.example.org"], ""),
    "given": (["unused.example.net"], "given.example.net,both.example.org,*.wild.example.net,127.0.0.1"),
}


@pytest.fixture(scope="module", params=[True, False], ids=["uvloop", "asyncio"])
def named(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[NamedServing]:
    directory = tmp_path_factory.mktemp("sni")
    pki = Pki.make(directory)
    serials = {serial(ssl.PEM_cert_to_DER_cert(pki.server.cert_pem.decode())): "default"}
    pairs = []
    for label, (own, given) in CERTIFICATES.items():
        cert, key, pair = write(directory, label, own)
        serials[serial(ssl.PEM_cert_to_DER_cert(pair.cert_pem.decode()))] = label
        pairs.append(CertKey.parse(f"{cert},{key}" + (f":{given}" if given else "")))
    context = server_context(pki.cert, pki.key, pki.ca, named=pairs, address="127.0.0.1")
    with Serving(Site(), pki, context=context, use_uvloop=request.param) as serving:
        yield NamedServing(serving, serials)


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("a.example.org", "exact"),
        ("A.Example.ORG", "exact"),
        ("other.example.org", "wildcard"),
        ("deep.other.example.org", "default"),
        ("later.example.org", "later"),
        ("both.example.org", "given"),
        ("given.example.net", "given"),
        ("x.wild.example.net", "given"),
        ("unused.example.net", "default"),
        ("unknown.example.com", "default"),
        (None, "given"),
    ],
)
def test_name_selects_the_certificate(named: NamedServing, name: str | None, label: str) -> None:
    assert named.served(name) == label


def test_selected_certificate_keeps_the_protocols(named: NamedServing) -> None:
    with named.handshake("a.example.org", "h2") as client:
        assert client.selected_alpn_protocol() == "h2"


def test_client_certificate_reaches_the_application(tmp_path: Path) -> None:
    pki, site = Pki.make(tmp_path), Site()
    cert, key, _ = write(tmp_path, "named", ["a.example.org"])
    context = server_context(pki.cert, pki.key, pki.ca, named=[CertKey(cert, key)])
    jane = pki.authority.issue_client("jane")
    client = pki.client(certificate=jane)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    with Serving(site, pki, context=context) as serving:
        raw = socket.create_connection(("127.0.0.1", serving.port), timeout=30)
        with client.wrap_socket(raw, server_hostname="a.example.org") as connection:
            connection.sendall(b"GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            assert b"200 OK" in connection.recv(4096)
    assert site.requests[0].peer_certificates[0] == ssl.PEM_cert_to_DER_cert(jane.cert_pem.decode())


def test_replaced_certificate_serves_its_new_names(tmp_path: Path) -> None:
    pki = Pki.make(tmp_path)
    cert, key, _ = write(tmp_path, "named", ["old.example.org"])
    context = server_context(pki.cert, pki.key, pki.ca, named=[CertKey(cert, key)])
    with Serving(Site(), pki, context=context) as serving:
        _, _, new = write(tmp_path, "named", ["new.example.org"])
        server = NamedServing(serving, {serial(ssl.PEM_cert_to_DER_cert(new.cert_pem.decode())): "new"})

        def is_new() -> bool:
            with server.handshake("new.example.org") as client:
                return serial(client.getpeercert(binary_form=True) or b"") in server.serials

        wait_for(is_new, 30)


@pytest.mark.parametrize(
    ("value", "parsed"),
    [
        ("a.crt,a.key", CertKey("a.crt", "a.key")),
        (" a.crt , a.key : b , *.c ", CertKey("a.crt", "a.key", ("b", "*.c"))),
        ("a.crt,a.key:b:c", CertKey("a.crt", "a.key", ("b:c",))),
    ],
)
def test_value_of_the_flag(value: str, parsed: CertKey) -> None:
    assert CertKey.parse(value) == parsed


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("a.crt", "expected comma separated certificate and key file paths"),
        ("a.crt,a.key,b", "expected comma separated certificate and key file paths"),
        ("a.crt,a.key:", "empty names list is not allowed"),
    ],
)
def test_invalid_value_of_the_flag(value: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        CertKey.parse(value)


def test_files_that_are_no_pair_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "no.crt").write_text("no certificate")
    (tmp_path / "no.key").write_text("no key")
    config = Config(cert_dir=str(tmp_path), tls_sni_cert_key=(f"{tmp_path}/no.crt,{tmp_path}/no.key",))
    with pytest.raises(ValueError, match=r"no\.crt and .*no\.key are not a certificate and its key"):
        serving_context(config)
