"""Kubeconfig files: address, CA and credentials of the server of a context."""

from __future__ import annotations

import base64
import ssl
import tempfile
from pathlib import Path
from typing import NamedTuple

from kubist.api.webhooks.client import clean_url
from kubist.base.http.tls.contexts import client_context
from kubist.model.meta.object import Object


class RemoteServer(NamedTuple):
    """Server of a kubeconfig: its URL, the name in its certificate (empty: the URL's host name), trust and client
    certificate, headers with credentials, the token file, which may change, and whether there are any credentials."""

    url: str
    server_name: str
    context: ssl.SSLContext
    headers: dict[str, str]
    token_file: str = ""
    has_credentials: bool = False


def read_kubeconfig(path: str, purpose: str = "", context: str = "") -> RemoteServer:
    """Server of a context, by default the current one. `purpose` completes the error message `FILE is not a kubeconfig
    …`. Raises ValueError, or OSError for a file that cannot be read."""
    # Saves start-up time: few servers need it.
    import yaml

    wrong = f"{path} is not a kubeconfig {purpose}".rstrip()
    try:
        config = yaml.safe_load(Path(path).read_bytes()) or {}
        chosen = _named(config, "context", context or config.get("current-context", ""))
        cluster = _named(config, "cluster", chosen.get("cluster", ""))
        user = _named(config, "user", chosen.get("user", ""))
        server = _Reader(Path(path).parent).server(cluster, user)
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, ssl.SSLError) as error:
        raise ValueError(f"{wrong}: {' '.join(str(error).split())}") from None
    if not server.url:
        which = f"context {context!r}" if context else "current context"
        raise ValueError(f"{wrong}: its {which} has no cluster with a server")
    return server


class _Reader:
    """Reads the fields of a kubeconfig. File names are relative to its directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def server(self, cluster: Object, user: Object) -> RemoteServer:
        headers = {}
        if user.get("token") or user.get("tokenFile"):
            token = user.get("token") or (self._directory / user["tokenFile"]).read_text().strip()
            headers["Authorization"] = f"Bearer {token}"
        elif unsupported := next((name for name in ("exec", "auth-provider") if user.get(name)), ""):
            raise ValueError(
                f"its user gets credentials from {unsupported!r}, and Kubist runs no credential plugins; "
                "use a token or a client certificate"
            )
        if cluster.get("proxy-url"):
            raise ValueError("its cluster has a proxy-url, and Kubist connects directly; remove it")
        url = clean_url(cluster["server"]) if cluster.get("server") else ""
        named = user.get("tokenFile") and not user.get("token")
        token_file = str(self._directory / user["tokenFile"]) if named else ""
        trust = self._trust(cluster, user)
        known = bool(headers or user.get("client-certificate-data") or user.get("client-certificate"))
        return RemoteServer(url, cluster.get("tls-server-name", ""), trust, headers, token_file, known)

    def _data(self, section: Object, field: str) -> bytes:
        """Content of a field, given inline (`…-data`) or as a file name."""
        if section.get(f"{field}-data"):
            return base64.b64decode(section[f"{field}-data"])
        return (self._directory / section[field]).read_bytes() if section.get(field) else b""

    def _trust(self, cluster: Object, user: Object) -> ssl.SSLContext:
        context = client_context(self._data(cluster, "certificate-authority"))
        if cluster.get("insecure-skip-tls-verify"):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        certificate, key = self._data(user, "client-certificate"), self._data(user, "client-key")
        if certificate:
            with tempfile.NamedTemporaryFile(suffix=".pem") as file:
                file.write(certificate + b"\n" + key)
                file.flush()
                context.load_cert_chain(file.name)
        return context


def _named(config: Object, kind: str, name: str) -> Object:
    for entry in config.get(f"{kind}s") or ():
        if entry.get("name") == name:
            content: Object = entry.get(kind) or {}
            return content
    return {}
