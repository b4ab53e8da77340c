"""Server-side TLS: a context that follows its files as they are rotated, and the client's certificate.

Uses only the standard library, so that a server starts without loading `cryptography`.
"""

from __future__ import annotations

import logging
import os
import ssl
import time
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from kubist.http.messages import ClientCertificate

log = logging.getLogger("kubist.http")

HTTP1: tuple[str, ...] = ("http/1.1",)
HTTP2: tuple[str, ...] = ("h2", "http/1.1")

_UID = "1.3.6.1.4.1.57683.2"
_CHECK_INTERVAL = 1.0

PathLike = str | Path


def server_context(
    cert_file: PathLike,
    key_file: PathLike,
    client_ca_file: PathLike | None = None,
    alpn: Sequence[str] = HTTP2,
    proxy_ca_file: PathLike | None = None,
    *,
    minimum: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2,
    ciphers: str = "",
) -> ssl.SSLContext:
    """A context for TLS from version `minimum` on, with OpenSSL's list of `ciphers` for TLS 1.2. New connections see
    rotated files about a second after the change.

    Client certificates are optional; one that neither CA file vouches for ends the handshake.
    """
    authorities = [file for file in (client_ca_file, proxy_ca_file) if file is not None]
    context = _load(cert_file, key_file, authorities, alpn, minimum, ciphers)
    files = [cert_file, key_file, *authorities]
    current, loaded, checked = context, _stamp(files), time.monotonic()

    def follow(connection: ssl.SSLObject, name: str | None, initial: ssl.SSLContext) -> None:
        nonlocal current, loaded, checked
        now = time.monotonic()
        if now - checked >= _CHECK_INTERVAL:
            checked = now
            stamp = _stamp(files)
            if stamp != loaded:
                try:
                    current = _load(cert_file, key_file, authorities, alpn, minimum, ciphers)
                    loaded = stamp
                    log.info("reloaded the serving certificate %s", cert_file)
                except (OSError, ValueError) as error:
                    log.warning("keeping the old serving certificate: %s: %s", cert_file, error)
        if current is not context:
            connection.context = current

    context.sni_callback = follow
    return context


def client_certificate(connection: ssl.SSLObject) -> ClientCertificate | None:
    """The verified certificate of the client: its subject as Kubernetes reads it."""
    der = connection.getpeercert(binary_form=True)
    decoded = connection.getpeercert()
    if not der or not decoded:
        return None
    common_name = ""
    organizations: list[str] = []
    uids: list[str] = []
    subject = cast("tuple[tuple[tuple[str, str], ...], ...]", decoded.get("subject", ()))
    for name in subject:
        for attribute, value in name:
            if attribute == "commonName":
                common_name = value
            elif attribute == "organizationName":
                organizations.append(value)
            elif attribute == _UID:
                uids.append(value)
    if len(uids) > 1 or "" in uids:
        return None
    return ClientCertificate(der, common_name, tuple(organizations), uids[0] if uids else "")


def _load(
    cert_file: PathLike,
    key_file: PathLike,
    authorities: Sequence[PathLike],
    alpn: Sequence[str],
    minimum: ssl.TLSVersion,
    ciphers: str,
) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = minimum
    if ciphers:
        context.set_ciphers(ciphers)
    context.load_cert_chain(cert_file, key_file)
    context.set_alpn_protocols(list(alpn))
    # A resumed session would carry a client certificate past the removal of its authority.
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    for file in authorities:
        context.load_verify_locations(file)
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def _stamp(files: Sequence[PathLike]) -> list[tuple[int, int, int]]:
    stamps = []
    for file in files:
        try:
            status = os.stat(file)
            stamps.append((status.st_mtime_ns, status.st_size, status.st_ino))
        except OSError:
            stamps.append((0, 0, 0))
    return stamps
