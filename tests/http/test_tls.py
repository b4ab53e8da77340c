from __future__ import annotations

import contextlib
import os
import socket
import ssl
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kubist.base.http import server_context
from kubist.base.http.tls import openssl
from kubist.base.http.tls.certificates import Pair, load_authority, new_authority, save
from kubist.base.http.tls.contexts import client_context, read_certificates
from tests import programs
from tests.http.serving import Pki, Serving, Site, read_all

HELLO = b"GET /hello HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def ask(serving: Serving, context: ssl.SSLContext) -> bytes:
    with serving.socket(context) as client:
        client.sendall(HELLO)
        return read_all(client)


def answered(serving: Serving, context: ssl.SSLContext) -> bool:
    try:
        return bool(ask(serving, context))
    except (ssl.SSLError, ConnectionError):
        return False


def der(pair: Pair) -> bytes:
    return ssl.PEM_cert_to_DER_cert(pair.cert_pem.decode())


def test_application_gets_the_client_certificate(either: Serving, site: Site, pki: Pki) -> None:
    pair = pki.authority.issue_client("jane", ["devs", "system:masters"])
    assert b"200 OK" in ask(either, pki.client(certificate=pair))
    assert site.requests[0].peer_certificates[0] == der(pair)


def test_application_gets_intermediate_certificates(uses_openssl: bool, site: Site, pki: Pki) -> None:
    pair = pki.authority.issue_client("jane")
    with_issuer = pair._replace(cert_pem=pair.cert_pem + pki.authority.cert_pem)
    with Serving(site, pki) as serving:
        ask(serving, pki.client(certificate=with_issuer))
    issuer = ssl.PEM_cert_to_DER_cert(pki.authority.cert_pem.decode())
    assert site.requests[0].peer_certificates == (der(pair), issuer)


def test_client_certificate_is_optional(uses_openssl: bool, site: Site, pki: Pki) -> None:
    with Serving(site, pki) as serving:
        ask(serving, pki.client())
    assert site.requests[0].peer_certificates == ()


def test_certificate_of_an_unknown_authority_reaches_the_application_unverified(
    uses_openssl: bool, site: Site, pki: Pki
) -> None:
    stranger = new_authority("stranger").issue_client("jane", ["system:masters"])
    with Serving(site, pki) as serving:
        assert answered(serving, pki.client(certificate=stranger)) is uses_openssl
    assert [request.peer_certificates for request in site.requests] == (
        [(der(stranger),)] if uses_openssl else []
    )


def test_client_must_hold_the_key_of_its_certificate(uses_openssl: bool, pki: Pki) -> None:
    """A stolen certificate is useless without its key, even if the handshake accepts any issuer."""
    issue = pki.authority.issue_client
    pairs = ((issue("thief"), issue("admin")) for _ in range(200))
    own, stolen = next((a, b) for a, b in pairs if len(der(a)) == len(der(b)))
    context = pki.client(certificate=own)
    context.maximum_version = ssl.TLSVersion.TLSv1_2  # its certificates are not encrypted
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    outgoing = ssl.MemoryBIO()
    server = server_context(pki.cert, pki.key, pki.ca).wrap_bio(to_server, to_client, server_side=True)
    client = context.wrap_bio(to_client, outgoing, server_hostname="127.0.0.1")
    swapped = False

    def shake_hands() -> None:
        nonlocal swapped
        with contextlib.suppress(ssl.SSLWantReadError):
            client.do_handshake()
        sent = outgoing.read()
        swapped = swapped or der(own) in sent
        to_server.write(sent.replace(der(own), der(stolen)))
        with contextlib.suppress(ssl.SSLWantReadError):
            server.do_handshake()

    shake_hands()
    assert not swapped
    with pytest.raises(ssl.SSLError, match="BAD_SIGNATURE"):
        shake_hands()
    assert swapped


def s_client(serving: Serving, *options: str) -> bytes:
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{serving.port}", "-ign_eof", *options]
    done = subprocess.run(command, input=HELLO, capture_output=True, timeout=20, check=False)
    return done.stdout + done.stderr


@programs.needs("openssl")
@pytest.mark.skipif(openssl.library() is None, reason="this Python's OpenSSL cannot be reached")
@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
def test_handshake_names_the_accepted_authorities(
    site: Site, cert_copy: Pki, tmp_path: Path, version: str
) -> None:
    users, proxies, later = (new_authority(f"{name} authority") for name in ("users", "proxies", "later"))
    (tmp_path / "users.crt").write_bytes(users.cert_pem + users.cert_pem)
    (tmp_path / "proxies.crt").write_bytes(proxies.cert_pem)
    context = server_context(
        cert_copy.cert, cert_copy.key, tmp_path / "users.crt", proxy_ca_file=tmp_path / "proxies.crt"
    )
    with Serving(site, cert_copy, context=context) as serving:
        shown = s_client(serving, version).decode()
        names = shown.partition("Acceptable client certificate CA names")[2]
        assert names.count("users authority") == 1 and names.count("proxies authority") == 1
        (tmp_path / "users.crt").write_bytes(later.cert_pem)
        time.sleep(1.05)
        shown = s_client(serving, version).decode()
    assert "CN = later authority" in shown or "CN=later authority" in shown
    assert "users authority" not in shown


def test_no_client_authority_means_no_certificate_request(site: Site, pki: Pki) -> None:
    with Serving(site, pki, context=server_context(pki.cert, pki.key)) as serving:
        ask(serving, pki.client(certificate=pki.authority.issue_client("jane")))
    assert site.requests[0].peer_certificates == ()


@pytest.mark.skipif(openssl.library() is None, reason="this Python's OpenSSL cannot be reached")
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_session_is_not_resumed(serving: Serving, pki: Pki, version: ssl.TLSVersion) -> None:
    context = pki.client(certificate=pki.authority.issue_client("jane"))
    context.minimum_version = context.maximum_version = version

    def connect(session: ssl.SSLSession | None) -> ssl.SSLSocket:
        raw = socket.create_connection(("127.0.0.1", serving.port), timeout=10)
        return context.wrap_socket(raw, server_hostname="127.0.0.1", session=session)

    with connect(None) as first:
        first.sendall(HELLO)
        read_all(first)
        session = first.session
    with connect(session) as second:
        second.sendall(HELLO)
        assert b"200 OK" in read_all(second)
        assert not second.session_reused


@programs.needs("openssl")
@pytest.mark.skipif(openssl.library() is None, reason="this Python's OpenSSL cannot be reached")
@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
def test_openssl_client_cannot_resume(serving: Serving, tmp_path: Path, version: str) -> None:
    session = str(tmp_path / "session.pem")
    first = s_client(serving, version, "-sess_out", session)
    assert b"200 OK" in first
    options = ["-sess_in", session] if Path(session).exists() else []
    second = s_client(serving, version, *options)
    assert b"\nNew, TLS" in second and b"\nReused, TLS" not in second


def test_old_tls_is_rejected(serving: Serving, pki: Pki) -> None:
    context = pki.client()
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    assert not answered(serving, context)


def test_tls_1_2_is_served(serving: Serving, pki: Pki) -> None:
    context = pki.client(certificate=pki.authority.issue_client("jane"))
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    assert b"200 OK" in ask(serving, context)


def test_rotated_certificate_is_served_without_restart(site: Site, cert_copy: Pki) -> None:
    pki = cert_copy

    def serial(serving: Serving) -> str:
        with serving.socket() as client:
            assert isinstance(client, ssl.SSLSocket)
            return str(client.getpeercert()["serialNumber"])  # type: ignore[index]

    with Serving(site, pki) as serving:
        first = serial(serving)
        kept = serving.http()
        kept.request("GET", "/hello")
        kept.getresponse().read()
        pki.cert.write_bytes(b"half written")
        time.sleep(1.05)
        assert serial(serving) == first
        save(pki.authority.issue_server(["127.0.0.1"]), pki.cert, pki.key)
        time.sleep(1.05)
        assert serial(serving) != first
        kept.request("GET", "/hello")
        assert kept.getresponse().status == 200
        kept.close()


def test_rotated_client_authority_replaces_the_old_in_the_handshake(
    monkeypatch: pytest.MonkeyPatch, site: Site, cert_copy: Pki, tmp_path: Path
) -> None:
    monkeypatch.setattr(openssl, "library", lambda: None)
    pki = cert_copy
    clients = tmp_path / "client-ca.crt"
    old, new = new_authority("old"), new_authority("new")
    clients.write_bytes(old.cert_pem)
    context = server_context(pki.cert, pki.key, clients)
    with Serving(site, pki, context=context) as serving:
        assert b"200 OK" in ask(serving, pki.client(certificate=old.issue_client("a")))
        clients.write_bytes(new.cert_pem)
        time.sleep(1.05)
        assert b"200 OK" in ask(serving, pki.client(certificate=new.issue_client("b")))
        assert not answered(serving, pki.client(certificate=old.issue_client("a")))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "no certificate"),
        (b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n", "no certificate"),
        (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "only certificates"),
    ],
)
def test_client_authority_file_without_certificates_is_an_error(
    uses_openssl: bool, pki: Pki, tmp_path: Path, content: bytes, problem: str
) -> None:
    (tmp_path / "ca.crt").write_bytes(content)
    with pytest.raises(ValueError, match=problem):
        server_context(pki.cert, pki.key, tmp_path / "ca.crt")


def test_private_keys_and_other_blocks_in_a_client_authority_file_are_ignored(
    pki: Pki, tmp_path: Path
) -> None:
    first, second = new_authority("first"), new_authority("second")
    (tmp_path / "ca.crt").write_bytes(b"text\n" + first.key_pem + first.cert_pem + b"\n" + second.cert_pem)
    found = read_certificates(tmp_path / "ca.crt")
    assert found == [ssl.PEM_cert_to_DER_cert(a.cert_pem.decode()) for a in (first, second)]


def test_leaf_in_a_bundle_is_trusted(serving: Serving, pki: Pki) -> None:
    context = client_context(pki.server.cert_pem)
    assert b"200 OK" in ask(serving, context)
    assert context.verify_flags & ssl.VERIFY_X509_PARTIAL_CHAIN
    assert not context.verify_flags & ssl.VERIFY_X509_STRICT


def test_other_blocks_and_unreadable_certificates_in_a_bundle_are_ignored(serving: Serving, pki: Pki) -> None:
    broken = b"-----BEGIN CERTIFICATE-----\nbm90ZQ==\n-----END CERTIFICATE-----\n"
    context = client_context("Größe\n".encode() + broken + pki.server.key_pem + pki.server.cert_pem)
    assert b"200 OK" in ask(serving, context)
    with pytest.raises(ValueError, match="no certificate"):
        client_context(broken + pki.server.key_pem)


def test_saved_authority_can_be_loaded(tmp_path: Path, pki: Pki) -> None:
    cert, key = tmp_path / "deep" / "ca.crt", tmp_path / "deep" / "ca.key"
    new_authority("kept").save(cert, key)
    assert stat.S_IMODE(os.stat(key).st_mode) == 0o600
    again = load_authority(cert, key)
    pair = again.issue_server(["example.test", "10.0.0.1"])
    from cryptography import x509

    leaf, root = x509.load_pem_x509_certificate(pair.cert_pem), x509.load_pem_x509_certificate(again.cert_pem)
    leaf.verify_directly_issued_by(root)
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["example.test"]
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == ["10.0.0.1"]


def test_keys_have_the_encoding_of_kubernetes_tools() -> None:
    """The client of Java recognizes a key of an elliptic curve by this header only."""
    authority = new_authority("test")
    client = authority.issue_client("admin")
    for pem in (authority.key_pem, client.key_pem):
        assert pem.startswith(b"-----BEGIN EC PRIVATE KEY-----\n")


def test_serving_does_not_import_cryptography() -> None:
    program = (
        "import sys, kubist.base.http.server, kubist.server.server; sys.exit('cryptography' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
