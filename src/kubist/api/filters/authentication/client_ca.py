"""Verification of client certificates against a CA file, for each request.

A verdict is stored on its connection. It is valid until the CA file changes or a certificate in the chain expires, so a
request costs a few comparisons.
"""

from __future__ import annotations

import hashlib
import logging
from typing import TYPE_CHECKING, NamedTuple

from kubist.base import clock
from kubist.base.caching import BoundedCache
from kubist.base.http.messages import Request
from kubist.base.http.tls.contexts import CHECK_INTERVAL, read_certificates, stamp

if TYPE_CHECKING:
    from cryptography import x509

    from kubist.api.filters.authentication.chains import Roots

log = logging.getLogger("kubist.filters")

COMMON_NAME = "2.5.4.3"
ORGANIZATION = "2.5.4.10"
UID = "1.3.6.1.4.1.57683.2"
RETRY_SECONDS = 10.0
"""Seconds for which a rejection is cached. It is short because a certificate may become valid."""


class Verified(NamedTuple):
    """Subject of a verified certificate in Kubernetes' reading, and the SHA-256 digest of the certificate.

    `problem` is the reason if the subject cannot name a user.
    """

    common_name: str
    organizations: tuple[str, ...]
    uid: str
    digest: str
    problem: str = ""


class Rejected(NamedTuple):
    """Reason why a client certificate is not accepted."""

    reason: str


Verdict = Verified | Rejected


class ClientCA:
    """CAs of a CA file. A replaced file is read again after about one second."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._stamp = stamp([path])
        self._checked = 0.0
        self._authorities = Authorities(read_certificates(path))
        self._key = f"client-ca {id(self)}"

    def verify(self, request: Request) -> Verdict | None:
        """Verdict on the client certificate of a request; None if the client presented no certificate."""
        chain = request.peer_certificates
        if not chain:
            return None
        now = clock.now()
        if abs(now - self._checked) >= CHECK_INTERVAL:
            self._check_file(now)
        kept: _CachedVerdict | None = request.connection.get(self._key)  # type: ignore[assignment]
        if kept is not None and kept.authorities is self._authorities and now <= kept.until:
            return kept.verdict
        kept = request.connection[self._key] = self._authorities.judge(chain, now)
        return kept.verdict

    def discard_verdicts(self) -> None:
        """Verifies every client certificate again."""
        self._authorities = self._authorities.without_verdicts()

    def _check_file(self, now: float) -> None:
        self._checked = now
        new_stamp = stamp([self._path])
        if new_stamp == self._stamp:
            return
        try:
            self._authorities = Authorities(read_certificates(self._path))
            self._stamp = new_stamp
            log.info("reloaded the client CA file %s", self._path)
        except (OSError, ValueError) as error:
            log.warning("keeping the old client CAs: %s: %s", self._path, error)


class Authorities:
    """One version of a CA file. Caches verdicts on accepted chains, so that a new connection is cheap."""

    def __init__(self, ders: list[bytes]) -> None:
        self._ders = ders
        self._roots: Roots | None = None
        self._accepted: BoundedCache[bytes, _CachedVerdict] = BoundedCache(entries=1000, key_length=32)

    def without_verdicts(self) -> Authorities:
        """The same CAs, without cached verdicts."""
        return Authorities(self._ders)

    def judge(self, chain: tuple[bytes, ...], now: float) -> _CachedVerdict:
        digest = hashlib.sha256(b"".join(chain)).digest()
        kept = self._accepted.get(digest)
        if kept is not None and now <= kept.until:
            return kept
        # Saves start-up time: `cryptography` is loaded with the first client certificate.
        from kubist.api.filters.authentication.chains import NotTrusted, Roots

        if self._roots is None:
            self._roots = Roots(self._ders)
        try:
            certificate, until = self._roots.verify(chain, now)
        except NotTrusted as error:
            return _CachedVerdict(self, now + RETRY_SECONDS, Rejected(str(error)))
        kept = self._accepted[digest] = _CachedVerdict(self, until, _subject(certificate, chain[0]))
        return kept


class _CachedVerdict(NamedTuple):
    authorities: Authorities
    until: float
    verdict: Verdict


def _subject(certificate: x509.Certificate, der: bytes) -> Verified:
    common_name, organizations, uids = "", [], []
    for attribute in certificate.subject:
        oid, value = attribute.oid.dotted_string, attribute.value
        if not isinstance(value, str):
            value = ""
        if oid == COMMON_NAME:
            common_name = value
        elif oid == ORGANIZATION:
            organizations.append(value)
        elif oid == UID:
            uids.append(value)
    problem = "the subject must have at most one UID, and not an empty one" if uids[1:] or "" in uids else ""
    digest = hashlib.sha256(der).hexdigest()
    return Verified(common_name, tuple(organizations), uids[0] if uids else "", digest, problem)
