"""PEM blocks of certificate signing requests: PKCS#10 requests and certificate chains.

The functions return an error message, or None.
"""

from __future__ import annotations

import base64
import binascii

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from kubist.http.pem import blocks


def request_error(encoded: str) -> str | None:
    """Error message for `spec.request` (base64 of PEM) if its form or its signature is invalid."""
    first = next(blocks(_decode(encoded)), None)
    if first is None or first.label != "CERTIFICATE REQUEST":
        return "PEM block type must be CERTIFICATE REQUEST"
    try:
        request = x509.load_der_x509_csr(first.content)
        valid = request.is_signature_valid
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return "x509: malformed certificate request"
    return None if valid else _invalid_signature(request)


def _invalid_signature(request: x509.CertificateSigningRequest) -> str:
    match request.public_key():
        case rsa.RSAPublicKey():
            return "crypto/rsa: verification error"
        case ec.EllipticCurvePublicKey():
            return "x509: ECDSA verification failure"
        case ed25519.Ed25519PublicKey():
            return "x509: Ed25519 verification failure"
    return "x509: cannot verify signature: algorithm unimplemented"


def certificates_error(encoded: str) -> str | None:
    """Error message for `status.certificate` (base64 of PEM). Empty is valid."""
    if not encoded:
        return None
    found = list(blocks(_decode(encoded)))
    if not found:
        return "must contain at least one CERTIFICATE PEM block"
    for label, content, headers in found:
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
