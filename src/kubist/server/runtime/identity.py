"""Credentials of servers in a program and of their clients."""

from __future__ import annotations

import re
import secrets
from pathlib import Path

from kubist.api.config import Config
from kubist.base import files
from kubist.server.runtime.pki import prepare
from kubist.server.serving_tls import serving_context

OWN_FILES = (
    "cert_dir",
    "tls_cert_file",
    "tls_private_key_file",
    "client_ca_file",
    "root_ca_file",
    "cluster_signing_cert_file",
    "cluster_signing_key_file",
    "service_account_signing_key_file",
    "token_auth_file",
)
"""Settings that a server in a program provides itself."""

_TOKEN_LINE = '{},admin,admin,"system:masters"\n'


class Identity:
    """Credentials of servers and clients: certificates, a signing key and an admin token."""

    def __init__(self, directory: Path, config: Config) -> None:
        files.make_directory(directory)
        self.directory = directory
        tokens = directory / "tokens.csv"
        self.token = _token(tokens)
        prepared = prepare(config, directory, in_memory=True)
        self.files = {name: getattr(prepared, name) for name in OWN_FILES if name != "token_auth_file"} | {
            "token_auth_file": str(tokens)
        }
        self.pki = directory / "pki"
        self.ca = self.pki / "ca.crt"
        self.client_certificate = self.pki / "admin.crt"
        self.client_key = self.pki / "admin.key"
        self.ssl_context = serving_context(prepared)


def _token(path: Path) -> str:
    """Admin token in a token file, which is created if it is missing. A data directory keeps its token."""
    try:
        match = re.fullmatch(_TOKEN_LINE.format(r"([\w-]{32})"), path.read_text("latin-1"))
    except FileNotFoundError:
        match = None
    if match:
        files.private(path)
        return match[1]
    token = secrets.token_urlsafe(24)
    files.write(path, _TOKEN_LINE.format(token).encode())
    return token
