"""The front proxy: a client with a certificate of the proxies' authority says in headers whom it speaks for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import unquote

from cryptography import x509
from cryptography.exceptions import InvalidSignature

from kubist.caching import BoundedCache
from kubist.context import User
from kubist.filters.authentication import with_groups
from kubist.http.messages import Request


class Authorities:
    """The certificates of a CA file, and whether one of them has issued a given certificate."""

    def __init__(self, path: str) -> None:
        self._certificates = x509.load_pem_x509_certificates(Path(path).read_bytes())
        self._known: BoundedCache[bytes, bool] = BoundedCache(entries=1000, key_length=8192)

    def issued(self, der: bytes) -> bool:
        """TLS has verified the certificate against all authorities; this tells which they were."""
        known = self._known.get(der)
        if known is None:
            known = self._known[der] = self._check(x509.load_der_x509_certificate(der))
        return known

    def _check(self, certificate: x509.Certificate) -> bool:
        for authority in self._certificates:
            try:
                certificate.verify_directly_issued_by(authority)
            except (ValueError, TypeError, InvalidSignature):
                continue
            return True
        return False


class RequestHeaders:
    """The headers of `--requestheader-*`, believed from whom they may come."""

    def __init__(
        self,
        trusted: Callable[[bytes], bool],
        allowed_names: Sequence[str],
        usernames: Sequence[str],
        groups: Sequence[str],
        extra_prefixes: Sequence[str],
        uids: Sequence[str] = (),
    ) -> None:
        self._trusted = trusted
        self._allowed_names = frozenset(allowed_names)
        self._usernames = [name.lower() for name in usernames]
        self._groups = [name.lower() for name in groups]
        self._extra_prefixes = [prefix.lower() for prefix in extra_prefixes]
        self._uids = [name.lower() for name in uids]

    def user(self, request: Request) -> User | None:
        certificate = request.client_certificate
        if certificate is None or not self._trusted(certificate.der):
            return None
        if self._allowed_names and certificate.common_name not in self._allowed_names:
            return None
        name = _first(request, self._usernames)
        if not name:
            return None
        groups = [value for header in self._groups for value in request.header_values(header) if value]
        extra: dict[str, list[str]] = {}
        for prefix in self._extra_prefixes:
            for header in request.headers:
                if header.startswith(prefix):
                    values = extra.setdefault(unquote(header[len(prefix) :]), [])
                    values += request.header_values(header)
        pairs = tuple((key, tuple(values)) for key, values in extra.items())
        return with_groups(User(name, _first(request, self._uids), tuple(groups), pairs))


def _first(request: Request, headers: list[str]) -> str:
    return next((value for header in headers for value in request.header_values(header)[:1] if value), "")
