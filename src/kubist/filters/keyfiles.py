"""Key files of service-account tokens, by the rules of client-go's `keyutil`.

Only RSA and ECDSA keys on NIST curves count. Certificates give their public key. All other blocks are ignored.
"""

from __future__ import annotations

import ssl
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from kubist.http import pem

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey

_CURVES = ("secp224r1", "secp256r1", "secp384r1", "secp521r1")
_INTEGER, _OCTETS, _SEQUENCE, _VERSION = 0x02, 0x04, 0x30, 0xA0
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
    if _end(der, 0) != len(der):
        return None
    try:
        # OpenSSL parses the certificate. `cryptography.x509` would take longer to load than all of this module.
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=der)
        return serialization.load_der_public_key(_subject_public_key_info(der))
    except (*_UNREADABLE, ssl.SSLError):
        return None


def _subject_public_key_info(certificate: bytes) -> bytes:
    """Public key of a well-formed certificate (DER): the value after version, serial number, signature, issuer,
    validity and subject."""
    at = _content_start(certificate, _content_start(certificate, 0))
    if certificate[at] == _VERSION:
        at = _end(certificate, at)
    for _ in range(5):
        at = _end(certificate, at)
    return certificate[at : _end(certificate, at)]


def _private_key(der: bytes) -> PrivateKey | None:
    try:
        # OpenSSL's check of RSA keys takes 50 ms, because it tests that the factors are prime. Go does not.
        key = serialization.load_der_private_key(der, None, unsafe_skip_rsa_key_validation=True)
    except _UNREADABLE:
        return None
    if isinstance(key, rsa.RSAPrivateKey):
        return key if _is_consistent(key.private_numbers()) else None
    return key if isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.name in _CURVES else None


def _is_consistent(key: rsa.RSAPrivateNumbers) -> bool:
    """Checks of Go's `crypto/rsa`: factors, exponents and coefficient fit, and none is dangerously small."""
    p, q, n, e = key.p, key.q, key.public_numbers.n, key.public_numbers.e
    half = n.bit_length() // 2
    return (
        min(p, q) > 1
        and p * q == n
        and e < 1 << 31
        and e * key.dmp1 % (p - 1) == 1
        and e * key.dmq1 % (q - 1) == 1
        and (key.d % (p - 1), key.d % (q - 1)) == (key.dmp1, key.dmq1)
        and key.iqmp * q % p == 1
        and (p - q).bit_length() > half - 100
        and key.d.bit_length() > half
    )


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
    second = _end(der, first)
    return der[first], der[second] if second < len(der) else 0


def _content_start(der: bytes, at: int) -> int:
    """Position of the content of the value at `at`."""
    if at + 1 >= len(der):
        return len(der)
    return at + 2 + (der[at + 1] & 0x7F if der[at + 1] & 0x80 else 0)


def _end(der: bytes, at: int) -> int:
    """Position after the value at `at`."""
    return _content_start(der, at) + _length(der, at)


def _length(der: bytes, at: int) -> int:
    if at + 1 >= len(der):
        return 0
    if not der[at + 1] & 0x80:
        return der[at + 1]
    return int.from_bytes(der[at + 2 : _content_start(der, at)], "big")
