"""Serving certificates that the server name of a handshake (SNI) selects, by the rules of --tls-sni-cert-key."""

from __future__ import annotations

import ipaddress
import re
import ssl
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_is_subdomain = re.compile(rf"{_LABEL}(\.{_LABEL})*").fullmatch
_LONGEST_NAME = 253


class CertKey(NamedTuple):
    """Files of a certificate and its key, and the names it serves. Without names, the certificate's own names apply."""

    cert_file: str
    key_file: str
    names: tuple[str, ...] = ()

    @classmethod
    def parse(cls, value: str) -> CertKey:
        """Value of the flag: `cert,key` or `cert,key:name,name`. Raises ValueError in kube-apiserver's words."""
        files, colon, names = value.partition(":")
        if colon and not names.strip():
            raise ValueError("empty names list is not allowed")
        cert, comma, key = files.partition(",")
        if not comma or "," in key:
            raise ValueError("expected comma separated certificate and key file paths")
        listed = tuple(name.strip() for name in names.split(",")) if colon else ()
        return cls(cert.strip(), key.strip(), listed)


class Selector:
    """Chooses the context of a handshake. `contexts` return the newest context of each certificate.

    An exact name precedes a wildcard, a configured name precedes a name in a certificate, and an earlier certificate
    precedes a later one. A handshake without a name gets the certificate for `address`, if there is one.
    """

    def __init__(
        self, pairs: Sequence[CertKey], contexts: Sequence[Callable[[], ssl.SSLContext]], address: str = ""
    ) -> None:
        self._pairs, self._contexts, self._address = pairs, contexts, address
        self._current: list[ssl.SSLContext] = []
        self._by_name: dict[str, ssl.SSLContext] = {}
        self._refresh()

    def choose(self, connection: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        """Callback of a handshake. Keeps the default certificate for unknown names."""
        self._refresh()
        server_name = name.lower() if name else self._address
        context = self._by_name.get(server_name)
        if context is None and name:
            context = self._by_name.get(f"*.{server_name.partition('.')[2]}" if "." in server_name else "*")
        if context is not None:
            connection.context = context

    def _refresh(self) -> None:
        current = [context() for context in self._contexts]
        if current == self._current:
            return
        explicit: dict[str, ssl.SSLContext] = {}
        own: dict[str, ssl.SSLContext] = {}
        for pair, context in zip(self._pairs, current, strict=True):
            for name in pair.names:
                explicit.setdefault(name, context)
            if not pair.names:
                for name in _names_of(pair.cert_file):
                    own.setdefault(name, context)
        self._current, self._by_name = current, own | explicit


def _names_of(cert_file: str) -> Iterator[str]:
    """Common name and DNS names of a certificate. IP addresses do not count, because clients send none."""
    # Saves start-up time: only --tls-sni-cert-key needs it.
    from cryptography import x509

    certificate = x509.load_pem_x509_certificate(Path(cert_file).read_bytes())
    for attribute in certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME):
        if _is_domain(str(attribute.value)):
            yield str(attribute.value)
    try:
        alternatives = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return
    yield from alternatives.value.get_values_for_type(x509.DNSName)


def _is_domain(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        domain = name.removeprefix("*.")
        return name == "*" or (len(domain) <= _LONGEST_NAME and _is_subdomain(domain) is not None)
    return False
