"""Credentials of one cluster: its CA for client certificates, its front proxy, its signing key, and its
administrator's token.

They are files in the cluster's directory, because a server reads them from files. No other cluster accepts them.
"""

from __future__ import annotations

import base64
import csv
import os
import secrets
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec

from kubist.api.config import SERVE_DEFAULTS
from kubist.base import files
from kubist.base.http.tls import certificates
from kubist.model.meta.object import Object
from kubist.server.runtime.pki import front_proxy, make_front_proxy

ADMIN = "kubernetes-admin"
MASTERS = "system:masters"
FILES = {
    "client_ca_file": "ca.crt",
    "cluster_signing_cert_file": "ca.crt",
    "cluster_signing_key_file": "ca.key",
    "service_account_signing_key_file": "service-account.key",
    "token_auth_file": "tokens.csv",
}
"""Settings of a server, and the files below `pki` that they name."""


def make(directory: Path) -> str:
    """Creates the files below `directory`, which is new. Returns the administrator's token."""
    authority = certificates.new_authority("kubist-ca")
    token = secrets.token_urlsafe(24)
    signing_key = certificates.key_pem(ec.generate_private_key(ec.SECP256R1()))
    pki = directory / "pki"
    pki.mkdir(files.DIRECTORY_MODE)
    contents = {
        "ca.crt": authority.cert_pem,
        "ca.key": authority.key_pem,
        "service-account.key": signing_key,
        "tokens.csv": f"{token},{ADMIN},{ADMIN},{MASTERS}\n".encode(),
    }
    for name, content in contents.items():
        descriptor = files.create(pki / name)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
    make_front_proxy(pki)
    return token


def read_token(directory: Path) -> str:
    """Token of the administrator, from the files of `make`. They become private again if they are not."""
    pki = directory / "pki"
    for path in pki.iterdir():
        files.private(path)
    make_front_proxy(pki)
    with open(pki / FILES["token_auth_file"], newline="") as file:
        return next(csv.reader(file))[0]


def settings(directory: Path) -> dict[str, Any]:
    """Settings of a server that uses these files."""
    pki = directory / "pki"
    return {setting: str(pki / name) for setting, name in FILES.items()} | front_proxy(SERVE_DEFAULTS, pki)


def kubeconfig(name: str, url: str, ca: bytes, token: str) -> Object:
    """Kubeconfig of the administrator of a cluster."""
    cluster: Object = {"server": url}
    if ca:
        cluster["certificate-authority-data"] = base64.b64encode(ca).decode()
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": f"{name}-admin", "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": f"{name}-admin"}}],
        "current-context": name,
    }
