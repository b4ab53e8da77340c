"""Certificates of the built-in signers, and the recipe of the Kubernetes documentation."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import ssl
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.x509.oid import NameOID

from kubist.api.filters.authentication.client_ca import UID
from kubist.base.http.tls import openssl
from kubist.base.http.tls.certificates import new_authority
from kubist.cluster.control.certificatesigningrequest import SIGNERS, check, issue, known_names, validity
from kubist.testing import Cluster
from tests import programs

CLIENT = "kubernetes.io/kube-apiserver-client"
KUBELET_CLIENT = "kubernetes.io/kube-apiserver-client-kubelet"
KUBELET_SERVING = "kubernetes.io/kubelet-serving"
NODE = {"CN": "system:node:a", "O": "system:nodes"}
DNS = x509.DNSName("a.example")
IP = x509.IPAddress(ipaddress.ip_address("10.0.0.1"))
EMAIL = x509.RFC822Name("a@example.com")
URI = x509.UniformResourceIdentifier("spiffe://a/b")
OIDS = {"CN": NameOID.COMMON_NAME, "O": NameOID.ORGANIZATION_NAME}


def request(subject: dict[str, str], *names: x509.GeneralName) -> x509.CertificateSigningRequest:
    parts = [x509.NameAttribute(OIDS[part], value) for part, value in subject.items()]
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(parts))
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())


def issued(
    usages: list[str], *names: x509.GeneralName, seconds: int | None = None, **subject: str
) -> x509.Certificate:
    authority = new_authority("signer")
    key = serialization.load_pem_private_key(authority.key_pem, None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    certificate = x509.load_pem_x509_certificate(authority.cert_pem)
    return issue(request(subject or {"CN": "jane"}, *names), usages, seconds, certificate, key)


def extension(certificate: x509.Certificate, kind: Any) -> Any:
    try:
        return certificate.extensions.get_extension_for_class(kind)
    except x509.ExtensionNotFound:
        return None


@pytest.mark.parametrize(
    ("usages", "bits"),
    [
        (["client auth"], None),
        (["digital signature", "client auth"], {"digital_signature"}),
        (["signing", "key encipherment"], {"digital_signature", "key_encipherment"}),
        (
            ["cert sign", "crl sign", "content commitment"],
            {"key_cert_sign", "crl_sign", "content_commitment"},
        ),
        (["encipher only", "server auth"], None),
        (["key agreement", "decipher only"], {"key_agreement", "decipher_only"}),
        (["data encipherment"], {"data_encipherment"}),
    ],
)
def test_key_usage_has_the_requested_bits_and_is_never_empty(
    usages: list[str], bits: set[str] | None
) -> None:
    found = extension(issued(usages), x509.KeyUsage)
    if bits is None:
        assert found is None
        return
    assert found.critical
    names = ["digital_signature", "content_commitment", "key_encipherment", "data_encipherment"]
    names += ["key_agreement", "key_cert_sign", "crl_sign"]
    if found.value.key_agreement:
        names += ["encipher_only", "decipher_only"]
    assert {name for name in names if getattr(found.value, name)} == bits


@pytest.mark.parametrize(
    ("usages", "oids"),
    [
        (["client auth", "server auth"], ["1.3.6.1.5.5.7.3.1", "1.3.6.1.5.5.7.3.2"]),
        (["s/mime", "email protection"], ["1.3.6.1.5.5.7.3.4"]),
        (["netscape sgc", "ipsec user"], ["1.3.6.1.5.5.7.3.7", "2.16.840.1.113730.4.1"]),
        (["digital signature"], None),
    ],
)
def test_extended_key_usage_has_the_requested_purposes(usages: list[str], oids: list[str] | None) -> None:
    found = extension(issued(usages), x509.ExtendedKeyUsage)
    assert (None if found is None else [oid.dotted_string for oid in found.value]) == oids


def test_certificate_names_its_issuer_and_is_not_a_ca() -> None:
    certificate = issued(["client auth"])
    assert extension(certificate, x509.AuthorityKeyIdentifier) is not None
    assert extension(certificate, x509.BasicConstraints).value.ca is False


def test_alternative_names_are_copied_without_unknown_kinds() -> None:
    other = x509.RegisteredID(x509.ObjectIdentifier("1.2.3"))
    found = extension(issued(["server auth"], URI, other, IP, DNS, EMAIL), x509.SubjectAlternativeName)
    assert list(found.value) == [DNS, EMAIL, IP, URI]


def test_subject_has_only_known_names() -> None:
    """kube-controller-manager drops other names, too. The one that is a uid must not come from the requester."""
    names = [
        (NameOID.COMMON_NAME, "admin"),
        (NameOID.ORGANIZATION_NAME, "a"),
        (x509.ObjectIdentifier(UID), "7"),
        (NameOID.EMAIL_ADDRESS, "a@example.com"),
        (NameOID.ORGANIZATION_NAME, "b"),
        (NameOID.COMMON_NAME, "jane"),
    ]
    asked = x509.Name([x509.NameAttribute(oid, value) for oid, value in names])
    parts = [[name.rfc4514_string() for name in part] for part in known_names(asked).rdns]
    assert [sorted(part) for part in parts] == [["O=a", "O=b"], ["CN=jane"]]
    assert list(known_names(x509.Name([]))) == []


def test_signer_reads_the_request_that_the_approver_sees(cluster: Cluster) -> None:
    """A PEM block begins at the beginning of a line. Some parsers also accept spaces before it."""
    seen, hidden = (
        request({"CN": name}).public_bytes(serialization.Encoding.PEM) for name in ("jane", "root")
    )
    spec = {
        "request": base64.b64encode(b"  " + hidden + seen).decode(),
        "signerName": CLIENT,
        "usages": ["client auth"],
    }
    path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    cluster.request("POST", path, {"metadata": {"name": "two-requests"}, "spec": spec})
    approve(cluster, "two-requests")
    held = cluster.wait("csr/two-requests", lambda found: "certificate" in found["status"])
    certificate = x509.load_pem_x509_certificate(base64.b64decode(held["status"]["certificate"]))
    assert certificate.subject.rfc4514_string() == "CN=jane"


def test_ed25519_ca_signs() -> None:
    key = ed25519.Ed25519PrivateKey.generate()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ca")])
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now).not_valid_after(now + datetime.timedelta(days=9))
    authority = builder.sign(key, None)
    certificate = issue(request({"CN": "jane"}), ["client auth"], None, authority, key)
    certificate.verify_directly_issued_by(authority)
    assert certificate.not_valid_after_utc == authority.not_valid_after_utc


@pytest.mark.parametrize(
    ("asked", "minutes"),
    [(None, 365 * 1440 - 5), (1, 10), (600, 10), (3600, 60), (8 * 3600, 475), (10**9, 365 * 1440 - 5)],
)
def test_lifetime_is_ten_minutes_to_one_year(asked: int | None, minutes: int) -> None:
    now = datetime.datetime.now(datetime.UTC)
    start, end = validity(now, asked)
    assert now - start == datetime.timedelta(minutes=5)
    assert end - now == datetime.timedelta(minutes=minutes)


SERVING = ["digital signature", "server auth"]
CLIENTS = ["digital signature", "client auth"]


@pytest.mark.parametrize(
    ("signer", "subject", "names", "usages", "why"),
    [
        (CLIENT, {"CN": "a"}, [], ["client auth"], ""),
        (CLIENT, {"CN": "a"}, [DNS], [*CLIENTS, "key encipherment"], ""),
        (CLIENT, {"CN": "a"}, [], ["server auth"], "invalid usage for client certificate: server auth"),
        (CLIENT, {"CN": "a"}, [], ["digital signature"], "missing required usage for client certificate"),
        (KUBELET_CLIENT, NODE, [], CLIENTS, ""),
        (KUBELET_CLIENT, NODE, [], [*CLIENTS, "key encipherment"], ""),
        (KUBELET_CLIENT, {"CN": "system:node:a"}, [], CLIENTS, "subject organization is not system:nodes"),
        (KUBELET_CLIENT, {**NODE, "CN": "a"}, [], CLIENTS, "does not begin with system:node:"),
        (KUBELET_CLIENT, NODE, [DNS], CLIENTS, "DNS subjectAltNames are not allowed"),
        (KUBELET_CLIENT, NODE, [IP], CLIENTS, "IP subjectAltNames are not allowed"),
        (KUBELET_CLIENT, NODE, [EMAIL], CLIENTS, "Email subjectAltNames are not allowed"),
        (KUBELET_CLIENT, NODE, [URI], CLIENTS, "URI subjectAltNames are not allowed"),
        (
            KUBELET_CLIENT,
            NODE,
            [],
            ["client auth"],
            "usages did not match [client auth digital signature key",
        ),
        (KUBELET_SERVING, NODE, [DNS, IP], SERVING, ""),
        (KUBELET_SERVING, NODE, [IP], [*SERVING, "key encipherment"], ""),
        (KUBELET_SERVING, NODE, [], SERVING, "DNS or IP subjectAltName is required"),
        (KUBELET_SERVING, NODE, [DNS, URI], SERVING, "URI subjectAltNames are not allowed"),
        (KUBELET_SERVING, NODE, [DNS], CLIENTS, "usages did not match [digital signature key encipherment"),
        (KUBELET_SERVING, {**NODE, "CN": "a"}, [DNS], SERVING, "does not begin with system:node:"),
        ("kubernetes.io/legacy-unknown", {"CN": "a"}, [URI], ["any", "cert sign"], ""),
    ],
)
def test_signers_check_requests(
    signer: str, subject: dict[str, str], names: list[x509.GeneralName], usages: list[str], why: str
) -> None:
    message = ""
    try:
        check(request(subject, *names), usages, SIGNERS[signer])
    except ValueError as error:
        message = str(error)
    assert why in message and bool(why) is bool(message)


def approve(cluster: Cluster, name: str) -> None:
    path = f"/apis/certificates.k8s.io/v1/certificatesigningrequests/{name}"
    held = cluster.request("GET", path)
    held["status"] = {"conditions": [{"type": "Approved", "status": "True", "reason": "Test"}]}
    cluster.request("PUT", f"{path}/approval", held)


@programs.needs("openssl")
@pytest.mark.parametrize(
    "usages", [["client auth"], ["digital signature", "client auth"], ["key encipherment", "client auth"]]
)
def test_documented_recipe_gives_a_usable_client_certificate(
    cluster: Cluster, tmp_path: Path, usages: list[str]
) -> None:
    if "key encipherment" in usages and openssl.library() is None:
        pytest.skip("OpenSSL rejects such a certificate during the handshake")
    key, csr, crt = (tmp_path / f"myuser.{end}" for end in ("key", "csr", "crt"))
    subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
    command = ["openssl", "req", "-new", "-key", str(key), "-out", str(csr), "-subj", "/CN=myuser"]
    subprocess.run(command, check=True, capture_output=True)
    name = f"myuser-{usages[0].replace(' ', '-')}"
    spec = {
        "request": base64.b64encode(csr.read_bytes()).decode(),
        "signerName": CLIENT,
        "expirationSeconds": 86400,
        "usages": usages,
    }
    path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    cluster.request("POST", path, {"metadata": {"name": name}, "spec": spec})
    approve(cluster, name)
    held = cluster.wait(f"csr/{name}", lambda found: "certificate" in found["status"])
    crt.write_bytes(base64.b64decode(held["status"]["certificate"]))
    context = ssl.create_default_context(cafile=str(cluster.ca))
    context.load_cert_chain(crt, key)
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{cluster.url}/api/v1/nodes", context=context)
    with refused.value as answer:
        assert answer.code == 403 and b'User \\"myuser\\" cannot list resource' in answer.read()
