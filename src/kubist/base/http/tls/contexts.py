"""TLS: server contexts that reload their files, client contexts, and the certificates of a client.

Uses only the standard library, so that a server starts without importing `cryptography`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import ssl
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kubist.base.http.tls import openssl, pem
from kubist.errors import CertificateError

if TYPE_CHECKING:
    from kubist.base.http.tls.sni import CertKey, Selector

if sys.version_info < (3, 13):
    from _ssl import ENCODING_DER

log = logging.getLogger("kubist.http")

HTTP1: tuple[str, ...] = ("http/1.1",)
HTTP2: tuple[str, ...] = ("h2", "http/1.1")

CHECK_INTERVAL = 1.0
"""Seconds between two checks whether files were replaced."""

PathLike = str | Path


class ServerContext(ssl.SSLContext):
    """Server context that uses the newest files for new connections."""

    _files: _Files

    def wrap_bio(self, *args: Any, **kwargs: Any) -> ssl.SSLObject:
        return self._files.context().wrap_bio(*args, **kwargs)


def server_context(
    cert_file: PathLike,
    key_file: PathLike,
    client_ca_file: PathLike | None = None,
    alpn: Sequence[str] = HTTP2,
    proxy_ca_file: PathLike | None = None,
    *,
    minimum: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2,
    ciphers: str = "",
    named: Sequence[CertKey] = (),
    address: str = "",
    announce: bool = True,
) -> ssl.SSLContext:
    """Server context for TLS from version `minimum` on, with OpenSSL's cipher list `ciphers` for TLS 1.2.

    New connections use replaced files about one second after the change.

    `named`: more certificates, selected by the server name of the handshake. `address` is that of the listener.

    Client certificates are optional. The handshake does not verify their issuer if `openssl.configure` works,
    so the application must verify `Request.peer_certificates`. With `announce`, it tells clients which issuers are
    accepted; some clients then send no certificate of another issuer.
    """
    authorities = [file for file in (client_ca_file, proxy_ca_file) if file is not None]
    context = ServerContext(ssl.PROTOCOL_TLS_SERVER)
    context._files = _Files(cert_file, key_file, authorities, alpn, minimum, ciphers, announce)
    if named:
        # Saves start-up time: only --tls-sni-cert-key needs it.
        from kubist.base.http.tls.sni import Selector

        others = [_Files(pair[0], pair[1], authorities, alpn, minimum, ciphers, announce) for pair in named]
        context._files.select_by_name(Selector(named, [other.context for other in others], address))
    return context


class _Files:
    """Files of a server context, and a context with their newest valid content."""

    def __init__(
        self,
        cert_file: PathLike,
        key_file: PathLike,
        authorities: Sequence[PathLike],
        alpn: Sequence[str],
        minimum: ssl.TLSVersion,
        ciphers: str,
        announce: bool,
    ) -> None:
        self._cert_file, self._key_file = cert_file, key_file
        self._announce = announce
        self._authorities, self._alpn = authorities, alpn
        self._minimum, self._ciphers = minimum, ciphers
        self._watched = [cert_file, key_file, *authorities]
        self._stamp = stamp(self._watched)
        self._checked = time.monotonic()
        self._selector: Selector | None = None
        self._context = self._load()

    def select_by_name(self, selector: Selector) -> None:
        """Lets the server name of a handshake select another certificate."""
        self._selector = selector
        self._context = self._load()

    def context(self) -> ssl.SSLContext:
        now = time.monotonic()
        if now - self._checked >= CHECK_INTERVAL:
            self._checked = now
            new_stamp = stamp(self._watched)
            if new_stamp != self._stamp:
                self._reload(new_stamp)
        return self._context

    def _reload(self, new_stamp: Stamp) -> None:
        try:
            self._context = self._load()
            self._stamp = new_stamp
            log.info("reloaded the serving certificate %s", self._cert_file)
        except (OSError, ValueError) as error:
            log.warning("keeping the old serving certificate: %s: %s", self._cert_file, error)

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = self._minimum
        if self._ciphers:
            context.set_ciphers(self._ciphers)
        context.load_cert_chain(self._cert_file, self._key_file)
        context.set_alpn_protocols(list(self._alpn))
        # Every connection proves that its client holds the private key, so resumption and renegotiation are
        # off.
        context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION
        context.num_tickets = 0
        self._request_certificates(context)
        if self._selector is not None:
            context.sni_callback = self._selector.choose
        return context

    def _request_certificates(self, context: ssl.SSLContext) -> None:
        """Requests client certificates if there are authorities for them, and turns off resumption."""
        authorities = [der for file in self._authorities for der in read_certificates(file)]
        if authorities:
            context.verify_mode = ssl.CERT_OPTIONAL
        try:
            if not openssl.configure(context, authorities, announce=self._announce) and authorities:
                trust_any_anchor(context)
                context.load_verify_locations(cadata=b"".join(authorities))
        except (ValueError, ssl.SSLError):
            files = " and ".join(map(str, self._authorities))
            raise CertificateError(f"{files} must contain only certificates, in PEM form") from None


def peer_certificates(connection: ssl.SSLObject) -> tuple[bytes, ...]:
    """Certificates that the client presented (DER), its own first. Their issuer is not verified.

    The handshake proved that the client holds the private key of the first one.
    """
    own = connection.getpeercert(binary_form=True)
    if not own:
        return ()
    if sys.version_info >= (3, 13):
        return tuple(connection.get_unverified_chain())
    chain = connection._sslobj.get_unverified_chain()  # type: ignore[attr-defined]
    return tuple(certificate.public_bytes(ENCODING_DER) for certificate in chain)


def client_context(authorities: bytes = b"") -> ssl.SSLContext:
    """Client context that trusts the certificates of a PEM text, or the system's authorities if it is empty.

    Other blocks and unreadable certificates are ignored. Raises ValueError if no certificate is left.
    """
    if not authorities:
        context = ssl.create_default_context()
        trust_any_anchor(context)
        return context
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trust_any_anchor(context)
    loaded = 0
    for certificate in pem.certificates(authorities):
        with contextlib.suppress(ssl.SSLError):
            context.load_verify_locations(cadata=certificate)
            loaded += 1
    if not loaded:
        raise ValueError("there is no certificate in PEM form")
    return context


def trust_any_anchor(context: ssl.SSLContext) -> None:
    """Trusts every certificate in the store, even a leaf, as Go does. Python 3.13 changed the defaults of both
    flags. All contexts that trust certificates of others use this function."""
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT


def read_certificates(file: PathLike) -> list[bytes]:
    """Certificates (DER) of a PEM file. Other blocks are ignored. Raises CertificateError if there are none."""
    certificates = pem.certificates(Path(file).read_bytes())
    if not certificates:
        raise CertificateError(f"{file} contains no certificate in PEM form")
    return certificates


Stamp = list[tuple[int, int, int]]


def stamp(files: Sequence[PathLike]) -> Stamp:
    """Values that change when a file is replaced."""
    stamps = []
    for file in files:
        try:
            status = os.stat(file)
            stamps.append((status.st_mtime_ns, status.st_size, status.st_ino))
        except OSError:
            stamps.append((0, 0, 0))
    return stamps
