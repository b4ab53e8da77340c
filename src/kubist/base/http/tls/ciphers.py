"""TLS versions and cipher suites by their names in kube-apiserver's flags."""

from __future__ import annotations

import ssl

VERSIONS = {"VersionTLS12": ssl.TLSVersion.TLSv1_2, "VersionTLS13": ssl.TLSVersion.TLSv1_3}
OLD_VERSIONS = ("VersionTLS10", "VersionTLS11")

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
TLS13_SUITES = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
"""TLS 1.3 cipher suites. They are always enabled, as in kube-apiserver; naming them in the flag has no effect."""


def minimum_version(name: str) -> ssl.TLSVersion:
    """Minimum TLS version for the value of `--tls-min-version`."""
    if not name:
        return ssl.TLSVersion.TLSv1_2
    if name in OLD_VERSIONS:
        raise ValueError(
            f"--tls-min-version {name} is not supported because it is not secure; use VersionTLS12"
        )
    if name not in VERSIONS:
        raise ValueError(f'--tls-min-version: unknown tls version "{name}"; use {" or ".join(VERSIONS)}')
    return VERSIONS[name]


def openssl_ciphers(names: tuple[str, ...]) -> str:
    """OpenSSL's cipher list for the suites of `--tls-cipher-suites`. Empty: OpenSSL's default."""
    for name in names:
        if name not in SUITES and name not in TLS13_SUITES:
            raise ValueError(
                f"--tls-cipher-suites: Cipher suite {name} not supported or doesn't exist; "
                f"choose of {', '.join(SUITES)}"
            )
    return ":".join(SUITES[name] for name in names if name in SUITES)
