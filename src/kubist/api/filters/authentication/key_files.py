"""Key files of service-account tokens, by the rules of client-go's `keyutil`.

Only RSA keys and ECDSA keys on NIST curves count. A certificate counts as its public key. All other blocks are ignored.
"""

from __future__ import annotations

import ssl
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from kubist.base.http.tls import pem

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey

_CURVES: dict[str, type[ec.EllipticCurve]] = {
    "06052b81040021": ec.SECP224R1,
    "06082a8648ce3d030107": ec.SECP256R1,
    "06052b81040022": ec.SECP384R1,
    "06052b81040023": ec.SECP521R1,
}
"""Object identifier (hexadecimal DER) → curve."""
_CURVE_NAMES = frozenset(curve().name for curve in _CURVES.values())
_RSA, _ECDSA = "06092a864886f70d010101", "06072a8648ce3d0201"
"""Object identifiers of algorithms in PKCS#8 keys."""
_OTHERS = ("06032b6570", "06032b656e")
"""Ed25519 and X25519, which are valid in a key file but sign no tokens."""
_VERSION_1 = b"\x02\x01\x01"
_OBJECT_ID, _INTEGER, _OCTETS, _SEQUENCE, _CONTEXT_0, _CONTEXT_1 = 0x06, 0x02, 0x04, 0x30, 0xA0, 0xA1
_NO_BITS = b"\x03\x00"
_PKCS1, _SEC1, _PKCS8 = (_INTEGER, _INTEGER), (_INTEGER, _OCTETS), (_INTEGER, _SEQUENCE)
"""ASN.1 tags of the first two values of a private key, by its form."""
_FORMS = {
    "RSA PRIVATE KEY": _PKCS1,
    "EC PRIVATE KEY": _SEC1,
    "PRIVATE KEY": _PKCS8,
}
"""Label of a private key → its form."""
_UNREADABLE = (ValueError, TypeError, UnsupportedAlgorithm)


def read_private_key(path: str) -> PrivateKey:
    """First readable private key of a file. Its PEM label must name its form. Raises ValueError if the file has
    none."""
    for block in pem.blocks(Path(path).read_bytes()):
        if _FORMS.get(block.label) == _first_tags(block.content):
            key = _private_key(block.content)
            if key is not None:
                return key
            if _algorithm(block.content) in _OTHERS:
                break
    raise ValueError(f"{path} contains no valid RSA or ECDSA private key in PEM form")


def read_public_keys(path: str) -> list[PublicKey]:
    """Public keys of a file, from its public keys, private keys and certificates. Raises ValueError if the file has
    none.

    Labels do not matter. A private ECDSA key counts only in SEC 1 form, not in PKCS#8.
    """
    candidates = (_public_key(block.content) for block in pem.blocks(Path(path).read_bytes()))
    keys = [key for key in candidates if key is not None]
    if not keys:
        raise ValueError(f"{path} contains no valid RSA or ECDSA public key in PEM form")
    return keys


def _public_key(der: bytes) -> PublicKey | None:
    tags = _first_tags(der)
    if tags[0] == _INTEGER:
        private = _private_key(der)
        if private is None or (tags == _PKCS8 and isinstance(private, ec.EllipticCurvePrivateKey)):
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
        # OpenSSL parses the certificate. `cryptography.x509` would take longer to load than everything else in this
        # module.
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=der)
        return serialization.load_der_public_key(_subject_public_key_info(der))
    except (*_UNREADABLE, ssl.SSLError):
        return None


def _subject_public_key_info(certificate: bytes) -> bytes:
    """Public key of a well-formed certificate (DER): the value after version, serial number, signature, issuer,
    validity and subject. Raises ValueError if the two signature algorithms differ."""
    content, algorithm, _ = _values(certificate)
    signed = _values(content)
    if signed and signed[0][0] == _CONTEXT_0:
        del signed[0]
    if len(signed) < 6 or signed[1] != algorithm:
        raise ValueError("the certificate has two different signature algorithms")
    return signed[5]


def _private_key(der: bytes) -> PrivateKey | None:
    """Private key of any form. Data after a key in SEC 1 or PKCS#8 form is ignored, as in Go."""
    match _first_tags(der):
        case tags if tags == _PKCS1:
            return _rsa_key(der)
        case tags if tags == _SEC1:
            return _ecdsa_key(der)
    algorithm, values = _algorithm(der), _values(der)
    if len(values) < 3 or values[2][0] != _OCTETS:
        return None
    inner = _content(values[2])
    if algorithm == _RSA and _first_tags(inner) == _PKCS1:
        return _rsa_key(inner)
    if algorithm == _ECDSA and _first_tags(inner) == _SEC1:
        parameters = _values(values[1])[1:2]
        named = parameters and parameters[0][0] == _OBJECT_ID
        return _ecdsa_key(inner, parameters[0] if named else b"")
    return None


def _rsa_key(der: bytes) -> rsa.RSAPrivateKey | None:
    """Key in PKCS#1 form."""
    try:
        # OpenSSL's check of RSA keys takes 50 ms, because it tests whether the factors are prime. Go does not test
        # this.
        key = serialization.load_der_private_key(der, None, unsafe_skip_rsa_key_validation=True)
    except _UNREADABLE:
        return None
    return key if isinstance(key, rsa.RSAPrivateKey) and _is_consistent(key.private_numbers()) else None


def _ecdsa_key(der: bytes, curve_id: bytes = b"") -> ec.EllipticCurvePrivateKey | None:
    """Key in SEC 1 form, on the curve of its PKCS#8 envelope or else its own curve. The public key is computed; a
    public key in the file is ignored."""
    version, secret, *optional = _values(der) or (b"", b"")
    named = {value[0]: _content(value) for value in optional}
    curve = _CURVES.get((curve_id or named.get(_CONTEXT_0, b"")).hex())
    public = named.get(_CONTEXT_1, _NO_BITS)
    if version != _VERSION_1 or curve is None or public[:1] != _NO_BITS[:1] or _end(public, 0) != len(public):
        return None
    try:
        return ec.derive_private_key(int.from_bytes(_content(secret), "big"), curve())
    except ValueError:
        return None


def _algorithm(der: bytes) -> str:
    """Object identifier of the algorithm of a key in PKCS#8 form, in hexadecimal; empty for other forms."""
    values = _values(der) if _first_tags(der) == _PKCS8 else []
    return next((value.hex() for value in _values(values[1])[:1]), "") if values else ""


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
    return key if isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name in _CURVE_NAMES else None


def _values(der: bytes) -> list[bytes]:
    """Values of a sequence (DER); none if the sequence is incomplete."""
    at, end = _content_start(der, 0), _end(der, 0)
    if der[:1] != bytes((_SEQUENCE,)) or end > len(der):
        return []
    values = []
    while at < end:
        following = _end(der, at)
        if following > end:
            return []
        values.append(der[at:following])
        at = following
    return values


def _content(value: bytes) -> bytes:
    return value[_content_start(value, 0) :]


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
