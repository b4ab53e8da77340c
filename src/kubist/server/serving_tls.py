"""TLS of a server: the context that its configuration describes, and the names of its certificate."""

from __future__ import annotations

import ipaddress
import socket
import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from kubist.api.config import Config
from kubist.base.http.tls.ciphers import minimum_version, openssl_ciphers
from kubist.base.http.tls.contexts import HTTP1, HTTP2, server_context
from kubist.errors import CertificateError

if TYPE_CHECKING:
    from kubist.base.http.tls.sni import CertKey


def serving_context(config: Config) -> ssl.SSLContext:
    """TLS context from the configured files, or from a self-signed certificate in cert_dir, which is created if
    missing."""
    cert, key = config.tls_cert_file, config.tls_private_key_file
    if not cert:
        where = Path(config.cert_dir or "kubist-certificates")
        cert, key = str(where / "apiserver.crt"), str(where / "apiserver.key")
        if not Path(cert).exists():
            # Saves start-up time: `cryptography` is loaded only to make a certificate.
            from kubist.base.http.tls import certificates

            authority = certificates.new_authority("kubist")
            made = authority.issue_server(serving_names(config))
            # The file includes the CA, so that clients can use it to verify the server.
            pair = made._replace(cert_pem=made.cert_pem + authority.cert_pem)
            certificates.save(pair, Path(cert), Path(key))
    protocols = HTTP2 if config.http2 else HTTP1
    proxies = config.requestheader_client_ca_file or None
    minimum, ciphers = minimum_version(config.tls_min_version), openssl_ciphers(config.tls_cipher_suites)
    named: list[CertKey] = []
    if config.tls_sni_cert_key:
        # Saves start-up time: only --tls-sni-cert-key needs it.
        from kubist.base.http.tls.sni import CertKey

        named = [CertKey.parse(value) for value in config.tls_sni_cert_key]
    try:
        return server_context(
            cert,
            key,
            config.client_ca_file or None,
            protocols,
            proxies,
            minimum=minimum,
            ciphers=ciphers,
            named=named,
            address=config.bind_address,
            # Each cluster below /clusters has a CA of its own.
            announce=not config.clusters,
        )
    except ssl.SSLError:
        pairs = " or ".join(f"{pair[0]} and {pair[1]}" for pair in [(cert, key), *named])
        raise CertificateError(f"{pairs} are not a certificate and its key, in PEM form") from None
    except OSError as error:
        paths = [cert, key, *(path for pair in named for path in pair[:2])]
        raise CertificateError(f"{error.filename or _unreadable(paths)}: {error.strerror}") from None


def serving_names(config: Config) -> list[str]:
    """DNS names and IP addresses of the serving certificate."""
    first = str(next(ipaddress.ip_network(config.service_cluster_ip_range.split(",")[0]).hosts()))
    names = ["localhost", "127.0.0.1", "::1", socket.gethostname(), first]
    names += [
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
    ]
    if config.advertise_address:
        names.append(config.advertise_address)
    return list(dict.fromkeys(names))


def _unreadable(paths: Iterable[str]) -> str:
    """First of the files that cannot be read. Errors of `ssl` do not name it."""
    for path in paths:
        try:
            Path(path).read_bytes()
        except OSError:
            return path
    return "a certificate or key file"
