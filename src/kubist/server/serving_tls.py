"""TLS of a server: the context that its configuration describes, the names of its certificate, and the names of TLS
versions and cipher suites in flags."""

from __future__ import annotations

import ipaddress
import socket
import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from kubist.api.config import Config
from kubist.base.http.tls.contexts import HTTP1, HTTP2, server_context
from kubist.errors import CertificateError

if TYPE_CHECKING:
    from kubist.base.http.tls.sni import CertKey

_VERSIONS = {"VersionTLS12": ssl.TLSVersion.TLSv1_2, "VersionTLS13": ssl.TLSVersion.TLSv1_3}
_OLD_VERSIONS = ("VersionTLS10", "VersionTLS11")

SUITES = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
    "TLS_RSA_WITH_AES_256_CBC_SHA": "AES256-SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256": "AES128-SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256": "ECDHE-ECDSA-AES128-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256": "ECDHE-RSA-AES128-SHA256",
}
"""TLS 1.2 cipher suites and their names in OpenSSL."""
_TLS13_SUITES = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
"""TLS 1.3 cipher suites. They are always enabled, as in kube-apiserver; naming them in the flag has no effect."""


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
    minimum, ciphers = _minimum_version(config.tls_min_version), openssl_ciphers(config.tls_cipher_suites)
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


def _minimum_version(name: str) -> ssl.TLSVersion:
    """Minimum TLS version for the value of `--tls-min-version`."""
    if not name:
        return ssl.TLSVersion.TLSv1_2
    if name in _OLD_VERSIONS:
        raise ValueError(
            f"--tls-min-version {name} is not supported because it is not secure; use VersionTLS12"
        )
    if name not in _VERSIONS:
        raise ValueError(f'--tls-min-version: unknown tls version "{name}"; use {" or ".join(_VERSIONS)}')
    return _VERSIONS[name]


def openssl_ciphers(names: tuple[str, ...]) -> str:
    """OpenSSL's cipher list for the suites of `--tls-cipher-suites`. Empty: OpenSSL's default."""
    for name in names:
        if name not in SUITES and name not in _TLS13_SUITES:
            raise ValueError(
                f"--tls-cipher-suites: Cipher suite {name} not supported or doesn't exist; "
                f"choose of {', '.join(SUITES)}"
            )
    return ":".join(SUITES[name] for name in names if name in SUITES)
