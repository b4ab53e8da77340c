"""CertificateSigningRequest: validation, the requesting user's identity, `/approval` and `/status`."""

import base64
import datetime
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed448
from cryptography.hazmat.primitives.serialization import Encoding

from kubist.api.kinds.certificates import pem
from kubist.api.resources.context import User

KEY = ec.generate_private_key(ec.SECP256R1())
NAME = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "x")])
REQUEST = x509.CertificateSigningRequestBuilder().subject_name(NAME).sign(KEY, hashes.SHA256())
REQUEST_PEM = REQUEST.public_bytes(Encoding.PEM)
CERTIFICATE_PEM = (
    x509.CertificateBuilder()
    .subject_name(NAME)
    .issuer_name(NAME)
    .public_key(KEY.public_key())
    .serial_number(1)
    .not_valid_before(datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC))
    .not_valid_after(datetime.datetime(2031, 1, 1, tzinfo=datetime.UTC))
    .sign(KEY, hashes.SHA256())
    .public_bytes(Encoding.PEM)
)


def encoded(text: bytes) -> str:
    return base64.b64encode(text).decode()


def tampered() -> bytes:
    der = bytearray(REQUEST.public_bytes(Encoding.DER))
    der[-1] ^= 1
    body = base64.encodebytes(bytes(der))
    return b"-----BEGIN CERTIFICATE REQUEST-----\n" + body + b"-----END CERTIFICATE REQUEST-----\n"


@pytest.fixture
def csrs(kind_of: Any) -> Any:
    kind = kind_of("certificates.k8s.io/v1", "CertificateSigningRequest")
    kind.context.user = User("jo", "u-1", ("devs",), (("scopes", ("a",)),))
    return kind


def csr(**spec: Any) -> dict[str, Any]:
    fine = {"request": encoded(REQUEST_PEM), "signerName": "example.com/signer", "usages": ["client auth"]}
    return {"spec": {**fine, **spec}}


@pytest.mark.parametrize(
    ("key", "error"),
    [
        (ec.generate_private_key(ec.SECP224R1()), None),
        (ec.generate_private_key(ec.SECP256K1()), "x509: unsupported elliptic curve"),
        (dsa.generate_private_key(1024), "x509: cannot verify signature: algorithm unimplemented"),
        (ed448.Ed448PrivateKey.generate(), "x509: cannot verify signature: algorithm unimplemented"),
    ],
)
def test_key_must_be_of_a_kind_that_kubernetes_knows(key: Any, error: str | None) -> None:
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    digest = None if isinstance(key, ed448.Ed448PrivateKey) else hashes.SHA256()
    text = builder.sign(key, digest).public_bytes(Encoding.PEM)
    assert pem.request_error(encoded(text)) == error


@pytest.mark.parametrize(
    ("text", "fine"),
    [
        (REQUEST_PEM, True),
        (b"before\n" + REQUEST_PEM + b"after", True),
        (REQUEST_PEM.replace(b"\n", b"\r\n"), True),
        (REQUEST_PEM.replace(b"CERTIFICATE REQUEST", b"NEW CERTIFICATE REQUEST"), False),
        (CERTIFICATE_PEM, False),
        (tampered(), False),
        (b"", False),
        (b"-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n", False),
    ],
)
def test_request_must_be_a_signed_pkcs10_request(text: bytes, fine: bool) -> None:
    assert (pem.request_error(encoded(text)) is None) is fine


@pytest.mark.parametrize(
    ("text", "fine"),
    [
        (b"", True),
        (CERTIFICATE_PEM, True),
        (CERTIFICATE_PEM * 2, True),
        (b"words", False),
        (CERTIFICATE_PEM + REQUEST_PEM, False),
        (CERTIFICATE_PEM.replace(b"-----\n", b"-----\nA: b\n\n", 1), False),
    ],
)
def test_certificate_must_contain_certificate_blocks_only(text: bytes, fine: bool) -> None:
    assert (pem.certificates_error(encoded(text)) is None) is fine


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, []),
        ({"usages": []}, [("spec.usages", "Required")]),
        (
            {"usages": ["any", "any", "flying"]},
            [("spec.usages[2]", "NotSupported"), ("spec.usages[1]", "Duplicate")],
        ),
        ({"signerName": "kubernetes.io/legacy-unknown"}, [("spec.signerName", "Invalid")]),
        ({"signerName": "local/signer"}, [("spec.signerName", "Invalid")]),
        ({"signerName": ""}, [("spec.signerName", "Required")]),
        ({"expirationSeconds": 599}, [("spec.expirationSeconds", "Invalid")]),
    ],
)
def test_invalid_spec_is_rejected(csrs: Any, spec: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert csrs.create_errors(csr(**spec)) == expected


def test_username_is_the_requesting_users(csrs: Any) -> None:
    made = csrs.create({**csr(username="root", groups=["system:masters"]), "status": {"conditions": [{}]}})
    assert {name: made["spec"][name] for name in ("username", "uid", "groups", "extra")} == {
        "username": "jo",
        "uid": "u-1",
        "groups": ["devs"],
        "extra": {"scopes": ["a"]},
    }
    assert made["status"] == {}


def approve(obj: Any) -> None:
    obj["status"]["conditions"] = [{"type": "Approved", "status": "True"}]


def test_approval_requires_the_approval_subresource(csrs: Any) -> None:
    old = csrs.stored(csr())
    assert csrs.change_errors(old, approve, "status") == [("status.conditions", "Forbidden")]
    assert csrs.change_errors(old, approve, "approval") == []
    approved = csrs.changed(old, approve, "approval")
    assert approved["status"]["conditions"][0]["lastTransitionTime"] == csrs.context.now
    assert csrs.change_errors(approved, lambda c: c["status"].clear(), "approval") == [
        ("status.conditions", "Forbidden")
    ]


def test_approved_and_denied_exclude_each_other(csrs: Any) -> None:
    old = csrs.changed(csrs.stored(csr()), approve, "approval")

    def deny(obj: Any) -> None:
        obj["status"]["conditions"].append({"type": "Denied", "status": "True"})

    assert csrs.change_errors(old, deny, "approval") == [("status.conditions", "Invalid")]


def test_issued_certificate_is_immutable(csrs: Any) -> None:
    old = csrs.stored(csr())

    def issue(obj: Any) -> None:
        obj["status"]["certificate"] = encoded(CERTIFICATE_PEM)

    issued = csrs.changed(old, issue, "status")
    assert issued["status"]["certificate"]
    assert csrs.changed(old, issue, "approval")["status"] == {}

    def again(obj: Any) -> None:
        obj["status"]["certificate"] = encoded(CERTIFICATE_PEM * 2)

    assert csrs.change_errors(issued, again, "status") == [("status.certificate", "Forbidden")]


def test_update_changes_metadata_only(csrs: Any) -> None:
    old = csrs.stored(csr())
    new = csrs.changed(old, lambda c: c["spec"].update(usages=["any"]))
    assert new["spec"] == old["spec"]
