"""Front proxy of a server with its own certificates: a CA and a client certificate for requests to extension API
servers, with the file names and settings of kubeadm."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

from cryptography import x509

from kubist.api.config import Config
from kubist.base.http.tls import certificates

AUTHORITY, CLIENT = "front-proxy-ca", "front-proxy-client"
RENEWAL = datetime.timedelta(days=30)
"""Certificates are replaced at a start in the last days before they expire."""


def front_proxy(config: Config, pki: Path) -> dict[str, Any]:
    """Settings that use the files of `make_front_proxy`. Empty if the configuration has a front proxy already."""
    made = {
        "requestheader_client_ca_file": str(pki / f"{AUTHORITY}.crt"),
        "requestheader_allowed_names": (CLIENT,),
        "requestheader_username_headers": ("X-Remote-User",),
        "requestheader_group_headers": ("X-Remote-Group",),
        "requestheader_extra_headers_prefix": ("X-Remote-Extra-",),
        "proxy_client_cert_file": str(pki / f"{CLIENT}.crt"),
        "proxy_client_key_file": str(pki / f"{CLIENT}.key"),
    }
    return {} if any(getattr(config, name) for name in made) else made


def make_front_proxy(pki: Path) -> bool:
    """Creates missing files, and replaces certificates that expire soon. Whether it wrote any. Raises ValueError
    with the path for a file that is not a certificate."""
    ca, ca_key, client, client_key = (
        pki / f"{name}.{kind}" for name in (AUTHORITY, CLIENT) for kind in ("crt", "key")
    )
    is_kept = _is_current(ca, ca_key)
    if is_kept and _is_current(client, client_key):
        return False
    if is_kept:
        authority = certificates.load_authority(ca, ca_key)
    else:
        authority = certificates.new_authority(AUTHORITY)
        authority.save(ca, ca_key)
    certificates.save(authority.issue_client(CLIENT), client, client_key)
    return True


def _is_current(certificate: Path, key: Path) -> bool:
    if not (certificate.exists() and key.exists()):
        return False
    try:
        found = x509.load_pem_x509_certificate(certificate.read_bytes())
    except ValueError:
        raise ValueError(certificate) from None
    return found.not_valid_after_utc > datetime.datetime.now(datetime.UTC) + RENEWAL
