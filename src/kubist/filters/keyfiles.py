"""Key files of service-account tokens, by the rules of client-go's `keyutil`.

Only RSA and ECDSA keys on NIST curves count. Certificates give their public key. All other blocks are ignored.
"""

from __future__ import annotations

from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from kubist.http import pem

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey

_CURVES = ("secp224r1", "secp256r1", "secp384r1", "secp521r1")
_INTEGER, _OCTETS, _SEQUENCE = 0x02, 0x04, 0x30
_FORMS = {
    "RSA PRIVATE KEY": (_INTEGER, _INTEGER),
    "EC PRIVATE KEY": (_INTEGER, _OCTETS),
    "PRIVATE KEY": (_INTEGER, _SEQUENCE),
}
"""Label of a private key → ASN.1 tags of its first two values: PKCS#1, SEC 1, PKCS#8."""
_UNREADABLE = (ValueError, TypeError, UnsupportedAlgorithm)


def read_private_key(path: str) -> PrivateKey:
    """First readable private key of a file. Its label must name its form. Raises ValueError without one."""
    for block in pem.blocks(Path(path).read_bytes()):
        if _FORMS.get(block.label) == _first_tags(block.content):
            key = _private_key(block.content)
            if key is not None:
                return key
    raise ValueError(f"{path} contains no valid RSA or ECDSA private key in PEM form")


def read_public_keys(path: str) -> list[PublicKey]:
    """Public keys of a file: of public keys, private keys and certificates. Raises ValueError without one.

    Labels do not matter. A private ECDSA key counts only in SEC 1 form, not in PKCS#8.
    """
    found = (_public_key(block.content) for block in pem.blocks(Path(path).read_bytes()))
    keys = [key for key in found if key is not None]
    if not keys:
        raise ValueError(f"{path} contains no valid RSA or ECDSA public key in PEM form")
    return keys


def _public_key(der: bytes) -> PublicKey | None:
    tags = _first_tags(der)
    if tags[0] == _INTEGER:
        private = _private_key(der)
        if private is None or (tags[1] == _SEQUENCE and isinstance(private, ec.EllipticCurvePrivateKey)):
            return None
        return private.public_key()
    return _supported_public(_load_public(der))


def _load_public(der: bytes) -> object:
    try:
        return serialization.load_der_public_key(der)
    except _UNREADABLE:
        pass
    try:
        return x509.load_der_x509_certificate(der).public_key()
    except _UNREADABLE:
        return None


def _private_key(der: bytes) -> PrivateKey | None:
    try:
        key = serialization.load_der_private_key(der, None)
    except _UNREADABLE:
        return None
    if isinstance(key, rsa.RSAPrivateKey):
        return key
    return key if isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.name in _CURVES else None


def _supported_public(key: object) -> PublicKey | None:
    if isinstance(key, rsa.RSAPublicKey):
        return key
    return key if isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name in _CURVES else None


def _first_tags(der: bytes) -> tuple[int, int]:
    """ASN.1 tags of the first two values of a sequence; zeros if there are none."""
    if len(der) < 4 or der[0] != _SEQUENCE:
        return 0, 0
    first = _content_start(der, 0)
    if first >= len(der):
        return 0, 0
    second = _content_start(der, first) + _length(der, first)
    return der[first], der[second] if second < len(der) else 0


def _content_start(der: bytes, at: int) -> int:
    """Position of the content of the value at `at`."""
    if at + 1 >= len(der):
        return len(der)
    return at + 2 + (der[at + 1] & 0x7F if der[at + 1] & 0x80 else 0)


def _length(der: bytes, at: int) -> int:
    if at + 1 >= len(der):
        return 0
    if not der[at + 1] & 0x80:
        return der[at + 1]
    return int.from_bytes(der[at + 2 : _content_start(der, at)], "big")
