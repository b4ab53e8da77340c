from __future__ import annotations

import os
import ssl
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from serving import Pki, Serving, Site, read_all

from kubist.http import server_context
from kubist.http.certificates import load_authority, new_authority, save

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


def test_client_certificate_is_handed_on(either: Serving, site: Site, pki: Pki) -> None:
    pair = pki.authority.issue_client("jane", ["devs", "system:masters"])
    assert b"200 OK" in ask(either, pki.client(certificate=pair))
    certificate = site.requests[0].client_certificate
    assert certificate is not None
    assert (certificate.common_name, certificate.organizations) == ("jane", ("devs", "system:masters"))
    assert certificate.uid == "" and ssl.DER_cert_to_PEM_cert(certificate.der).encode() == pair.cert_pem


def test_client_certificate_is_optional(serving: Serving, site: Site, pki: Pki) -> None:
    ask(serving, pki.client())
    assert site.requests[0].client_certificate is None


def test_user_uid_is_read_from_the_subject(serving: Serving, site: Site, pki: Pki) -> None:
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    from kubist.http import certificates

    name = x509.Name(
        [
            x509.NameAttribute(NameOID.COMMON_NAME, "jane"),
            x509.NameAttribute(x509.ObjectIdentifier("1.3.6.1.4.1.57683.2"), "uid-1"),
        ]
    )
    pair = pki.authority._issue(certificates._builder(name, 1), ExtendedKeyUsageOID.CLIENT_AUTH)
    ask(serving, pki.client(certificate=pair))
    certificate = site.requests[0].client_certificate
    assert certificate is not None and certificate.uid == "uid-1"


def test_foreign_client_certificate_reaches_no_application(serving: Serving, site: Site, pki: Pki) -> None:
    stranger = new_authority("stranger").issue_client("jane", ["system:masters"])
    assert not answered(serving, pki.client(certificate=stranger))
    assert not site.requests


def test_old_tls_is_refused(serving: Serving, pki: Pki) -> None:
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


def test_rotated_client_authority_replaces_the_old(site: Site, cert_copy: Pki, tmp_path: Path) -> None:
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
    names = [r.client_certificate.common_name for r in site.requests if r.client_certificate]
    assert names == ["a", "b"]


def test_authority_survives_saving(tmp_path: Path, pki: Pki) -> None:
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


def test_serving_does_not_load_cryptography() -> None:
    program = "import sys, kubist.http, kubist.http.certificates; sys.exit('cryptography' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
