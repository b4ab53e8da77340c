"""Certificates of every shape, for tests of client authentication."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kubist.base.http.tls.certificates import Pair, signature_hash

CLIENT_AUTH = (ExtendedKeyUsageOID.CLIENT_AUTH,)


@dataclass
class Made:
    """A certificate, its key, and the certificates above it without the root."""

    certificate: x509.Certificate
    key: Any
    above: tuple[x509.Certificate, ...] = ()

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.DER)

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def chain(self) -> list[bytes]:
        return [self.der, *(c.public_bytes(serialization.Encoding.DER) for c in self.above)]

    @property
    def pair(self) -> Pair:
        above = b"".join(c.public_bytes(serialization.Encoding.PEM) for c in self.above)
        private = self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return Pair(self.pem + above, private)


def key_usage(**bits: bool) -> x509.KeyUsage:
    names = "digital_signature content_commitment key_encipherment data_encipherment key_agreement"
    every = [*names.split(), "key_cert_sign", "crl_sign", "encipher_only", "decipher_only"]
    return x509.KeyUsage(**{name: bits.get(name, False) for name in every})


def make(
    name: str | Sequence[tuple[x509.ObjectIdentifier, str]],
    issuer: Made | None = None,
    *,
    key: Any = None,
    ca: bool | None = False,
    path_length: int | None = None,
    usages: Sequence[x509.ObjectIdentifier] = CLIENT_AUTH,
    extensions: Sequence[tuple[x509.ExtensionType, bool]] = (),
    starts: float = -300,
    ends: float = 3600,
    hash_algorithm: Any = None,
    signer: Any = None,
) -> Made:
    """A certificate, self-signed without an issuer. `ca=None`: no basic constraints. Times are seconds from now."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    attributes = [(NameOID.COMMON_NAME, name)] if isinstance(name, str) else name
    subject = x509.Name([x509.NameAttribute(oid, value, _validate=False) for oid, value in attributes])
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + datetime.timedelta(seconds=starts))
        .not_valid_after(now + datetime.timedelta(seconds=ends))
    )
    if ca is not None:
        builder = builder.add_extension(x509.BasicConstraints(ca, path_length), critical=True)
    if usages:
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    for value, critical in extensions:
        builder = builder.add_extension(value, critical)
    signer = signer or (issuer.key if issuer else key)
    algorithm = hash_algorithm or (hashes.SHA256() if signature_hash(signer) else None)
    above = (issuer.certificate, *issuer.above) if issuer and _is_intermediate(issuer) else ()
    return Made(builder.sign(signer, algorithm), key, above)


def _is_intermediate(made: Made) -> bool:
    return made.certificate.issuer != made.certificate.subject


def authority(name: str, issuer: Made | None = None, **options: Any) -> Made:
    return make(name, issuer, **{"ca": True, "usages": (), **options})
