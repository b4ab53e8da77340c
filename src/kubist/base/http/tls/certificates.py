"""Certificates for a server without configured ones: a CA, and server and client certificates signed by it.

Import this module in functions only: `cryptography` costs start-up time.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kubist.base import files

_AUTHORITY_DAYS = 3650
_LEAF_DAYS = 365
_CLOCK_SKEW = datetime.timedelta(minutes=5)


class Pair(NamedTuple):
    """Certificate and private key, both in PEM."""

    cert_pem: bytes
    key_pem: bytes


@dataclass(frozen=True, slots=True)
class Authority:
    """Certificate authority. `cryptography` must be able to sign with its key; any key type is allowed."""

    cert_pem: bytes
    key_pem: bytes

    def issue_server(self, names: Sequence[str], *, days: int = _LEAF_DAYS) -> Pair:
        """Serving certificate for `names` (host names and IP addresses)."""
        builder = _builder(subject(names[0][:64] if names else "kubist"), days)
        if names:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_alternative(name) for name in dict.fromkeys(names)]), False
            )
        return self._issue(builder, ExtendedKeyUsageOID.SERVER_AUTH)

    def issue_client(
        self, common_name: str, organizations: Sequence[str] = (), *, days: int = _LEAF_DAYS
    ) -> Pair:
        """Client certificate for the user `common_name` in the groups `organizations`."""
        return self._issue(
            _builder(subject(common_name, organizations), days), ExtendedKeyUsageOID.CLIENT_AUTH
        )

    def save(self, cert_file: Path, key_file: Path) -> None:
        save(Pair(self.cert_pem, self.key_pem), cert_file, key_file)

    def _issue(self, builder: x509.CertificateBuilder, usage: x509.ObjectIdentifier) -> Pair:
        issuer = x509.load_pem_x509_certificate(self.cert_pem)
        signer = load_pem_private_key(self.key_pem, None)
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            builder.issuer_name(issuer.subject)
            .public_key(key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
            .add_extension(_key_usage(authority=False), True)
            .add_extension(x509.ExtendedKeyUsage([usage]), False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.public_key()), False)  # type: ignore[arg-type]
            .sign(signer, signature_hash(signer))  # type: ignore[arg-type]
        )
        return _pair(certificate, key)


def new_authority(name: str) -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        _builder(subject(name), _AUTHORITY_DAYS)
        .issuer_name(subject(name))
        .public_key(key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .add_extension(_key_usage(authority=True), True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
        .sign(key, hashes.SHA256())
    )
    return Authority(*_pair(certificate, key))


def signature_hash(key: object) -> hashes.SHA256 | None:
    """Hash for a signature with this private key. Ed25519 and Ed448 take none."""
    return None if isinstance(key, ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey) else hashes.SHA256()


def load_authority(cert_file: Path, key_file: Path) -> Authority:
    return Authority(cert_file.read_bytes(), key_file.read_bytes())


def save(pair: Pair, cert_file: Path, key_file: Path) -> None:
    """Writes both files atomically, the key first."""
    files.write(key_file, pair.key_pem)
    files.write(cert_file, pair.cert_pem)


def is_own(certificate: x509.Certificate) -> bool:
    """Whether Kubist issued a serving or client certificate for itself, by the lifetime that only Kubist gives."""
    lifetime = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    return lifetime == datetime.timedelta(days=_LEAF_DAYS) + _CLOCK_SKEW


def missing_names(certificate: x509.Certificate, names: Sequence[str]) -> list[str]:
    """Host names and IP addresses that a serving certificate lacks."""
    try:
        alternatives = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return list(names)
    return [name for name in names if _alternative(name) not in alternatives]


def subject(common_name: str, organizations: Sequence[str] = ()) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, o) for o in organizations]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _builder(subject: x509.Name, days: int) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + datetime.timedelta(days=days))
    )


def _key_usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=not authority,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )


def key_pem(key: EllipticCurvePrivateKey) -> bytes:
    """Key as `EC PRIVATE KEY`, the encoding of client-go. Some clients do not recognize the type of a key
    in PKCS #8."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def _pair(certificate: x509.Certificate, key: EllipticCurvePrivateKey) -> Pair:
    return Pair(certificate.public_bytes(serialization.Encoding.PEM), key_pem(key))
