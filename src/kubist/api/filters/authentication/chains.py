"""X.509 path validation of client certificates, by the rules of Go's `Certificate.Verify` for client
authentication.

OpenSSL and `cryptography.x509.verification` cannot be used here. Python exposes OpenSSL's verification only within a
handshake. The verifier of `cryptography` follows the Web PKI: it rejects X.509 version 1, Ed25519 keys and trust
anchors that are not CAs. kube-apiserver accepts all of these.

The rules: a path leads from the client certificate to a trust anchor. Every signature is valid. Every
certificate is valid now, allows client authentication if it restricts its purpose, and has no unknown
critical extension. Every issuer is a CA that may sign certificates, and the path is no longer than its
issuers allow. One rule is stricter than Go's: alternative names below a CA with name constraints are
rejected, not compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, ExtensionOID

MAX_SIGNATURES = 20
"""Maximum number of signature checks for one client certificate. Real paths need one to three."""
MAX_INTERMEDIATES = 10
MIN_RSA_BITS = 1024
HASHES = frozenset(("sha256", "sha384", "sha512"))

_KNOWN = frozenset(
    (
        ExtensionOID.KEY_USAGE,
        ExtensionOID.BASIC_CONSTRAINTS,
        ExtensionOID.SUBJECT_ALTERNATIVE_NAME,
        ExtensionOID.NAME_CONSTRAINTS,
        ExtensionOID.CRL_DISTRIBUTION_POINTS,
        ExtensionOID.AUTHORITY_KEY_IDENTIFIER,
        ExtensionOID.SUBJECT_KEY_IDENTIFIER,
        ExtensionOID.EXTENDED_KEY_USAGE,
        ExtensionOID.CERTIFICATE_POLICIES,
        ExtensionOID.AUTHORITY_INFORMATION_ACCESS,
    )
)
_CLIENT = frozenset((ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE))


class NotTrusted(Exception):
    """Reason why a certificate is rejected."""


class Certificate:
    """A certificate with the values that path validation needs. Raises NotTrusted if it cannot be decoded."""

    __slots__ = (
        "der", "has_names", "is_ca", "is_constrained", "issuer", "key_size", "may_sign", "not_after", "not_before",
        "parsed", "path_length", "problem", "subject",
    )  # fmt: skip

    def __init__(self, der: bytes) -> None:
        try:
            self.parsed = x509.load_der_x509_certificate(der)
            self._read()
        except Exception as error:
            # The bytes come from the client, and `cryptography` raises many kinds of exceptions for malformed
            # ones.
            raise NotTrusted(f"malformed certificate: {error!r}") from None
        self.der = der

    def _read(self) -> None:
        parsed = self.parsed
        self.subject = parsed.subject.public_bytes()
        self.issuer = parsed.issuer.public_bytes()
        self.not_before = parsed.not_valid_before_utc.timestamp()
        self.not_after = parsed.not_valid_after_utc.timestamp()
        self.problem = ""
        constraints: x509.BasicConstraints | None = None
        usage: x509.KeyUsage | None = None
        self.has_names = self.is_constrained = False
        for extension in parsed.extensions:
            if extension.critical and extension.oid not in _KNOWN:
                self.problem = f"unhandled critical extension {extension.oid.dotted_string}"
            value = extension.value
            if isinstance(value, x509.BasicConstraints):
                constraints = value
            elif isinstance(value, x509.KeyUsage):
                usage = value
            elif isinstance(value, x509.ExtendedKeyUsage):
                if _CLIENT.isdisjoint(value):
                    self.problem = "incompatible key usage: not for client authentication"
            elif isinstance(value, x509.SubjectAlternativeName):
                self.has_names = True
            elif isinstance(value, x509.NameConstraints):
                self.is_constrained = True
        # A CA of X.509 version 1 has no extensions. It is trusted only as an anchor.
        self.is_ca = constraints is not None and constraints.ca
        unmarked = constraints is None and parsed.version is x509.Version.v1
        self.may_sign = (self.is_ca or unmarked) and (usage is None or usage.key_cert_sign)
        self.path_length = constraints.path_length if constraints is not None else None
        key = parsed.public_key()
        if isinstance(key, rsa.RSAPublicKey) and key.key_size < MIN_RSA_BITS:
            self.problem = f"RSA key of {key.key_size} bits is too small"

    def check(self, now: float) -> None:
        """Raises NotTrusted if the certificate cannot be part of any path at this time."""
        if self.problem:
            raise NotTrusted(self.problem)
        if not self.not_before <= now <= self.not_after:
            raise NotTrusted("certificate has expired or is not yet valid")

    def signed_by(self, issuer: Certificate) -> bool:
        """Whether the issuer's key made the signature, with a hash that is still secure."""
        try:
            algorithm = self.parsed.signature_hash_algorithm
            if algorithm is not None and algorithm.name not in HASHES:
                return False
            self.parsed.verify_directly_issued_by(issuer.parsed)
        except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
            return False
        return True


class Roots:
    """Trust anchors. Certificates that cannot be decoded are left out."""

    def __init__(self, ders: Iterable[bytes]) -> None:
        self._anchors: dict[bytes, list[Certificate]] = {}
        self._ders: set[bytes] = set()
        for der in dict.fromkeys(ders):
            try:
                anchor = Certificate(der)
            except NotTrusted:
                continue
            self._ders.add(der)
            self._anchors.setdefault(anchor.subject, []).append(anchor)

    def verify(self, chain: Sequence[bytes], now: float) -> tuple[x509.Certificate, float]:
        """Verifies a chain of DER certificates, the client's first.

        Returns the client certificate and the earliest expiry time of the path. Raises NotTrusted.
        """
        leaf = Certificate(chain[0])
        leaf.check(now)
        if leaf.der in self._ders:
            return leaf.parsed, leaf.not_after
        others: dict[bytes, list[Certificate]] = {}
        for der in chain[1 : MAX_INTERMEDIATES + 1]:
            try:
                other = Certificate(der)
                other.check(now)
            except NotTrusted:
                continue
            others.setdefault(other.subject, []).append(other)
        path = _Search(self._anchors, others, now).extend([leaf])
        if path is None:
            raise NotTrusted("certificate signed by unknown authority")
        return leaf.parsed, min(certificate.not_after for certificate in path)


class _Search:
    """Search for a path from a certificate to an anchor. The number of signature checks is limited."""

    def __init__(
        self, anchors: dict[bytes, list[Certificate]], others: dict[bytes, list[Certificate]], now: float
    ) -> None:
        self._anchors, self._others, self._now = anchors, others, now
        self._left = MAX_SIGNATURES

    def extend(self, path: list[Certificate]) -> list[Certificate] | None:
        """The path with its issuers up to an anchor; None if there is no such path."""
        issuer = path[-1].issuer
        for anchor in self._anchors.get(issuer, ()):
            if self._fits(path, anchor):
                return [*path, anchor]
        for other in self._others.get(issuer, ()):
            if other.is_ca and other not in path and self._fits(path, other):
                chain = self.extend([*path, other])
                if chain is not None:
                    return chain
        return None

    def _fits(self, path: list[Certificate], issuer: Certificate) -> bool:
        """Whether a certificate may be the issuer of the last certificate in a path."""
        try:
            issuer.check(self._now)
        except NotTrusted:
            return False
        if not issuer.may_sign:
            return False
        if issuer.path_length is not None and len(path) - 1 > issuer.path_length:
            return False
        if issuer.is_constrained and any(certificate.has_names for certificate in path):
            return False
        if not self._left:
            return False
        self._left -= 1
        return path[-1].signed_by(issuer)
