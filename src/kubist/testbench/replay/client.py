"""HTTPS connection of a replay."""

from __future__ import annotations

import base64
import binascii
import http.client
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson

from kubist.base import files
from kubist.base.http.tls.contexts import client_context
from kubist.base.jsontext.errors import DecodeError
from kubist.model.codec import yaml
from kubist.model.meta.object import Object

TIMEOUT = 60.0


def tls_context(authority: str | None, content: str | None = None) -> ssl.SSLContext:
    """TLS settings that trust an authority, by its file or its content; by default those of the system."""
    if not authority and not content:
        return client_context()
    text = Path(authority).read_bytes() if authority else (content or "").encode()
    try:
        return client_context(text or b"\n")
    except ValueError as error:
        raise ValueError(f"the certificate of the authority {authority or ''} is invalid: {error}") from None


class ReplayClient:
    """Sends requests to one server, one after the other."""

    def __init__(self, url: str, context: ssl.SSLContext, token: str = "") -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("https", "http") or not parts.hostname:
            raise ValueError(f"the server must be a URL such as https://127.0.0.1:6443, not {url!r}")
        port = parts.port
        self._prefix = parts.path.rstrip("/")
        self._token = token
        self._connection: http.client.HTTPConnection
        if parts.scheme == "https":
            self._connection = http.client.HTTPSConnection(
                parts.hostname, port or 443, context=context, timeout=TIMEOUT
            )
        else:
            self._connection = http.client.HTTPConnection(parts.hostname, port or 80, timeout=TIMEOUT)

    def send(
        self, method: str, target: str, body: bytes | None, headers: list[tuple[str, str]]
    ) -> tuple[int, Object]:
        sent = list(headers)
        if self._token:
            sent.append(("Authorization", f"Bearer {self._token}"))
        if body is not None:
            sent.append(("Content-Length", str(len(body))))
        try:
            self._connection.putrequest(method, self._prefix + target, skip_accept_encoding=True)
            for name, value in sent:
                self._connection.putheader(name, value.encode())
            self._connection.endheaders(body)
            response = self._connection.getresponse()
            raw = response.read()
        except OSError:
            self._connection.close()
            raise
        except http.client.HTTPException as error:
            self._connection.close()
            raise ConnectionError(f"{method} {target}: the response is malformed: {error}") from None
        try:
            content = orjson.loads(raw) if raw else {}
        except ValueError:
            content = {}
        return response.status, content if isinstance(content, dict) else {}

    def close(self) -> None:
        self._connection.close()


@dataclass(slots=True)
class Access:
    """Address of a server, and credentials of one user."""

    server: str
    context: ssl.SSLContext
    token: str


def read_kubeconfig(path: Path) -> Access:
    """Access of the current context. ValueError if the file is malformed or uses an unsupported feature."""
    try:
        document = yaml.parse(path.read_bytes()).value
    except DecodeError as error:
        raise ValueError(f"{path}: {error}") from None
    if not isinstance(document, dict):
        raise ValueError(f"{path}: is no kubeconfig")
    context = _named(path, document, "contexts", "context", document.get("current-context"))
    cluster = _named(path, document, "clusters", "cluster", context.get("cluster"))
    user = _named(path, document, "users", "user", context.get("user"))
    for name in ("exec", "auth-provider", "username"):
        if name in user:
            raise ValueError(
                f"{path}: users.user.{name} is not supported; use a token or a client certificate"
            )
    return Access(str(cluster.get("server", "")), _tls(path, cluster, user), _token(path, user))


def _named(path: Path, document: Object, plural: str, kind: str, name: Any) -> Object:
    entries = document.get(plural)
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and entry.get("name") == name and isinstance(entry.get(kind), dict):
            config: Object = entry[kind]
            return config
    raise ValueError(f'{path}: {plural}: there is no {kind} "{name or ""}"')


def _token(path: Path, user: Object) -> str:
    if user.get("tokenFile"):
        return (path.parent / str(user["tokenFile"])).read_text().strip()
    return str(user.get("token", ""))


def _tls(path: Path, cluster: Object, user: Object) -> ssl.SSLContext:
    if cluster.get("insecure-skip-tls-verify"):
        context = tls_context(None)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        authority = _content(path, cluster, "certificate-authority")
        context = tls_context(None, authority.decode() if authority else None)
    certificate, key = _content(path, user, "client-certificate"), _content(path, user, "client-key")
    if certificate and key:
        with tempfile.TemporaryDirectory(prefix="kubist-") as directory:
            pair = Path(directory) / "pair.pem"
            files.write(pair, certificate + b"\n" + key)
            context.load_cert_chain(pair)
    return context


def _content(path: Path, entry: Object, name: str) -> bytes | None:
    """Content of a field `NAME-data`, or of the file that `NAME` names."""
    data = entry.get(f"{name}-data")
    if data:
        try:
            return base64.b64decode(str(data), validate=True)
        except binascii.Error as error:
            raise ValueError(f"{path}: {name}-data: {error}") from None
    return (path.parent / str(entry[name])).read_bytes() if entry.get(name) else None
