"""Signs and verifies service-account JWTs. serviceaccounts.py checks the bound objects."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import orjson
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from kubist.api.filters.authentication.authentication import TokenError
from kubist.api.filters.authentication.key_files import (
    PrivateKey,
    PublicKey,
    read_private_key,
    read_public_keys,
)
from kubist.base import clock

if TYPE_CHECKING:
    from kubist.api.config import Config

Claims = dict[str, Any]

LEEWAY = 60
_CURVES: dict[str, tuple[str, hashes.HashAlgorithm, int, str]] = {
    "secp256r1": ("ES256", hashes.SHA256(), 32, "P-256"),
    "secp384r1": ("ES384", hashes.SHA384(), 48, "P-384"),
    "secp521r1": ("ES512", hashes.SHA512(), 66, "P-521"),
}
"""Curve → algorithm, digest, size of a coordinate in bytes, name in a JWK."""
_DIGESTS: dict[str, hashes.HashAlgorithm] = {
    "256": hashes.SHA256(),
    "384": hashes.SHA384(),
    "512": hashes.SHA512(),
}
_PKCS1 = padding.PKCS1v15()
ALGORITHMS = ("RS256", "ES256", "ES384", "ES512")
"""Signing algorithms of service-account tokens."""


class UnknownSigner(TokenError):
    """None of the known keys signed the token."""


class KeySet:
    """Public keys by ID, and the accepted signing algorithms."""

    def __init__(self, keys: dict[str, PublicKey], algorithms: Iterable[str] = ALGORITHMS) -> None:
        self._keys = keys
        self._accepted = frozenset(algorithms)

    def __contains__(self, key_id: object) -> bool:
        return key_id in self._keys

    def claims(self, token: str) -> Claims:
        """Claims of a token that one of the keys signed."""
        try:
            signed, _, signature = token.rpartition(".")
            first, second = signed.split(".")
            header, claims = _decode_json(first), _decode_json(second)
            self._check(header, signed.encode(), decode(signature))
        except InvalidSignature:
            raise UnknownSigner("invalid bearer token") from None
        except ValueError:
            raise TokenError("invalid bearer token") from None
        check_types(claims)
        return claims

    def _check(self, header: Claims, signed: bytes, signature: bytes) -> None:
        """Raises InvalidSignature unless the key with the token's key ID, or without an ID any key, signed it."""
        kid, name = header.get("kid", ""), header.get("alg")
        if not isinstance(kid, str) or not isinstance(name, str) or name not in self._accepted:
            raise ValueError("kid is not a string, or alg is not accepted")
        if "crit" in header:
            raise ValueError("the header has critical extensions, and none is supported")
        for key_id, key in self._keys.items():
            if not kid or kid == key_id:
                try:
                    return _verify(key, name, signed, signature)
                except InvalidSignature:
                    continue
        raise InvalidSignature

    def jwks(self) -> dict[str, Any]:
        """The keys as /openid/v1/jwks returns them."""
        return {"keys": [jwk(key) for key in self._keys.values()]}

    def algorithms(self) -> list[str]:
        return sorted({algorithm(key) for key in self._keys.values()})


class TokenSigner:
    """Signs with one key. Verifies tokens of any of its keys and issuers."""

    def __init__(
        self,
        key: PrivateKey,
        issuers: Sequence[str],
        audiences: Sequence[str] = (),
        public_keys: Iterable[PublicKey] = (),
    ) -> None:
        self.key = key
        self.issuers = tuple(issuers)
        self.audiences = tuple(audiences) or self.issuers[:1]
        """Audiences of a token if the request names none: the API server itself."""
        self.keys = key_set(list(public_keys) or [key.public_key()])
        header = {"alg": algorithm(key.public_key()), "kid": key_id(key.public_key())}
        self._header = _encode_json(header)

    @classmethod
    def from_config(cls, config: Config) -> TokenSigner | None:
        """Signer that the flags configure; None without a signing key."""
        path = config.service_account_signing_key_file
        if not path:
            return None
        key = read_private_key(path)
        if not _has_algorithm(key.public_key()):
            raise ValueError(f"{path} is a key on the curve P-224, which no token algorithm uses")
        public_keys = [
            public for file in config.service_account_key_file for public in read_public_keys(file)
        ]
        return cls(key, config.service_account_issuer, config.api_audiences, public_keys)

    def sign(self, claims: Claims) -> str:
        signed = f"{self._header}.{_encode_json({'iss': self.issuers[0], **claims})}"
        return f"{signed}.{_encode(_sign(self.key, signed.encode()))}"

    def verify(self, token: str) -> Claims:
        """Claims of a token that one of the keys signed, for one of the issuers, and that is valid now."""
        claims = self.keys.claims(token)
        if claims.get("iss") not in self.issuers:
            raise TokenError("invalid bearer token")
        check_dates(claims)
        return claims


def check_types(claims: Claims) -> None:
    """Rejects registered claims (RFC 7519) of wrong types, because even signed claims are untrusted input."""
    audience = claims.get("aud", "")
    if not isinstance(audience, str) and not is_texts(audience):
        raise TokenError("invalid bearer token")
    for name in ("iss", "sub", "jti"):
        if not isinstance(claims.get(name, ""), str):
            raise TokenError("invalid bearer token")
    for name in ("exp", "nbf", "iat"):
        _date(claims, name, 0.0)


def is_texts(value: object) -> bool:
    """Whether a value is a list of strings."""
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def check_dates(claims: Claims) -> None:
    now = clock.now()
    if now > _date(claims, "exp", float("inf")) + LEEWAY:
        raise TokenError("service account token has expired")
    if now + LEEWAY < _date(claims, "nbf", 0):
        raise TokenError("service account token is not valid yet")
    if now + LEEWAY < _date(claims, "iat", 0):
        raise TokenError("service account token is issued in the future")


def issuer_of(token: str) -> str:
    """Unverified issuer of a token; empty if the token is not a JWT."""
    parts = token.split(".")
    if len(parts) != 3:
        return ""
    try:
        issuer = _decode_json(parts[1]).get("iss")
    except ValueError:
        return ""
    return issuer if isinstance(issuer, str) else ""


def key_set(keys: Iterable[PublicKey]) -> KeySet:
    """Keys by their IDs. No JWT algorithm uses P-224, so such keys verify nothing."""
    return KeySet({key_id(key): key for key in keys if _has_algorithm(key)})


def _has_algorithm(key: PublicKey) -> bool:
    return isinstance(key, rsa.RSAPublicKey) or key.curve.name in _CURVES


def algorithm(key: PublicKey) -> str:
    return "RS256" if isinstance(key, rsa.RSAPublicKey) else _CURVES[key.curve.name][0]


def key_id(key: PublicKey) -> str:
    der = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return _encode(hashlib.sha256(der).digest())


def jwk(key: PublicKey) -> dict[str, str]:
    """JSON Web Key of a public key. The fields are in kube-apiserver's order."""
    if isinstance(key, rsa.RSAPublicKey):
        numbers = key.public_numbers()
        named = {"use": "sig", "kty": "RSA", "kid": key_id(key), "alg": algorithm(key)}
        return named | {"n": _encode_int(numbers.n), "e": _encode_int(numbers.e)}
    _, _, size, curve = _CURVES[key.curve.name]
    point = key.public_numbers()
    named = {"use": "sig", "kty": "EC", "kid": key_id(key), "crv": curve, "alg": algorithm(key)}
    return named | {"x": _encode_int(point.x, size), "y": _encode_int(point.y, size)}


def read_jwk(key: Claims) -> PublicKey | None:
    """Public key of a JWK; None for unsupported key types and curves."""
    if key.get("kty") == "RSA":
        return rsa.RSAPublicNumbers(_decode_int(key["e"]), _decode_int(key["n"])).public_key()
    curves: dict[str, ec.EllipticCurve] = {
        "P-256": ec.SECP256R1(),
        "P-384": ec.SECP384R1(),
        "P-521": ec.SECP521R1(),
    }
    if key.get("kty") == "EC" and key.get("crv") in curves:
        curve = curves[key["crv"]]
        return ec.EllipticCurvePublicNumbers(_decode_int(key["x"]), _decode_int(key["y"]), curve).public_key()
    return None


def _sign(key: PrivateKey, data: bytes) -> bytes:
    if isinstance(key, rsa.RSAPrivateKey):
        return key.sign(data, padding.PKCS1v15(), hashes.SHA256())
    _, digest, size, _ = _CURVES[key.curve.name]
    r, s = decode_dss_signature(key.sign(data, ec.ECDSA(digest)))
    return r.to_bytes(size, "big") + s.to_bytes(size, "big")


def _verify(key: PublicKey, name: str, data: bytes, signature: bytes) -> None:
    if isinstance(key, rsa.RSAPublicKey):
        digest = _DIGESTS.get(name[2:])
        if digest is None or name[:2] not in ("RS", "PS"):
            raise InvalidSignature
        pad = padding.PSS(padding.MGF1(digest), padding.PSS.DIGEST_LENGTH) if name[0] == "P" else _PKCS1
        return key.verify(signature, data, pad, digest)
    expected, digest, size, _ = _CURVES[key.curve.name]
    if name != expected or len(signature) != 2 * size:
        raise InvalidSignature
    pair = int.from_bytes(signature[:size], "big"), int.from_bytes(signature[size:], "big")
    return key.verify(encode_dss_signature(*pair), data, ec.ECDSA(digest))


def _date(claims: Claims, name: str, absent: float) -> float:
    value = claims.get(name, absent)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TokenError("invalid bearer token")
    return float(value)


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _encode_int(number: int, size: int = 0) -> str:
    return _encode(number.to_bytes(size or (number.bit_length() + 7) // 8, "big"))


def _encode_json(value: Claims) -> str:
    return _encode(json.dumps(value, separators=(",", ":")).encode())


def decode(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


def _decode_int(text: str) -> int:
    return int.from_bytes(decode(text), "big")


def _decode_json(text: str) -> Claims:
    """Decodes one part of a token. orjson limits the depth and rejects NaN, infinite numbers and lone surrogates."""
    value = orjson.loads(decode(text))
    if not isinstance(value, dict):
        raise ValueError(text)
    return value
