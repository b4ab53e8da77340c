"""HTTPS connection of a replay."""

from __future__ import annotations

import http.client
import ssl
from pathlib import Path
from urllib.parse import urlsplit

import orjson

from kubist.base.http.tls.contexts import client_context
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
            found = orjson.loads(raw) if raw else {}
        except ValueError:
            found = {}
        return response.status, found if isinstance(found, dict) else {}

    def close(self) -> None:
        self._connection.close()
