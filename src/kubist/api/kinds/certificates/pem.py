"""PEM blocks of certificate signing requests: PKCS#10 requests and certificate chains.

The functions return an error message, or None.
"""

from __future__ import annotations

import base64
import binascii

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from kubist.base.http.tls.pem import blocks

_CURVES = frozenset(("secp224r1", "secp256r1", "secp384r1", "secp521r1"))


def read_request(encoded: str) -> x509.CertificateSigningRequest:
    """Request in `spec.request` (base64 of PEM). Raises ValueError if its form is invalid.

    All code reads requests with this function, because another PEM parser could find a different request in the same
    text than the one that the approver saw.
    """
    first = next(blocks(_decode(encoded)), None)
    if first is None or first.label != "CERTIFICATE REQUEST":
        raise ValueError("PEM block type must be CERTIFICATE REQUEST")
    try:
        return x509.load_der_x509_csr(first.content)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ValueError("x509: malformed certificate request") from None


def request_error(encoded: str) -> str | None:
    """Error message for `spec.request` (base64 of PEM) if its form, its key or its signature is invalid."""
    try:
        request = read_request(encoded)
    except ValueError as error:
        return str(error)
    try:
        key, valid = request.public_key(), request.is_signature_valid
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return "x509: malformed certificate request"
    if isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name not in _CURVES:
        return "x509: unsupported elliptic curve"
    if not isinstance(key, rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey):
        return "x509: cannot verify signature: algorithm unimplemented"
    return None if valid else _invalid_signature(request)


def _invalid_signature(request: x509.CertificateSigningRequest) -> str:
    match request.public_key():
        case rsa.RSAPublicKey():
            return "crypto/rsa: verification error"
        case ec.EllipticCurvePublicKey():
            return "x509: ECDSA verification failure"
    return "x509: Ed25519 verification failure"


def certificates_error(encoded: str) -> str | None:
    """Error message for `status.certificate` (base64 of PEM). Empty is valid."""
    if not encoded:
        return None
    pem_blocks = list(blocks(_decode(encoded)))
    if not pem_blocks:
        return "must contain at least one CERTIFICATE PEM block"
    for label, content, headers in pem_blocks:
        if label != "CERTIFICATE":
            return f'only CERTIFICATE PEM blocks are allowed, found "{label}"'
        if headers:
            return "no PEM block headers are permitted"
        if not content:
            return "found CERTIFICATE PEM block containing 0 certificates"
        try:
            x509.load_der_x509_certificate(content)
        except ValueError:
            return "x509: malformed certificate"
    return None


def _decode(encoded: str) -> bytes:
    try:
        return base64.b64decode(encoded)
    except binascii.Error:
        return b""
