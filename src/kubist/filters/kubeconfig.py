"""Webhook client configured by a kubeconfig file: server, CA and the API server's credentials."""

from __future__ import annotations

import base64
import ssl
import tempfile
from pathlib import Path

import orjson

from kubist.http.client import CallFailed, post
from kubist.http.pool import Pool
from kubist.http.tls import client_context
from kubist.meta.object import Object
from kubist.webhooks.urls import clean_url


class RemoteReview:
    """Posts reviews to the server of the current context and returns their status."""

    def __init__(self, path: str, connections: Pool | None = None, timeout: float = 30.0) -> None:
        self._connections = connections
        self._where = Path(path)
        self._timeout = timeout
        # Saves start-up time: only servers with such webhooks need it.
        import yaml

        try:
            config = yaml.safe_load(self._where.read_bytes()) or {}
            context = _named(config, "context", config.get("current-context", ""))
            cluster = _named(config, "cluster", context.get("cluster", ""))
            user = _named(config, "user", context.get("user", ""))
            self._url = clean_url(cluster["server"]) if cluster.get("server") else ""
            self._server_name: str = cluster.get("tls-server-name", "")
            self._context = self._trust(cluster, user)
            self._headers = {}
            if user.get("token") or user.get("tokenFile"):
                token = user.get("token") or self._path(user["tokenFile"]).read_text().strip()
                self._headers["Authorization"] = f"Bearer {token}"
        except (yaml.YAMLError, ValueError, TypeError, AttributeError, ssl.SSLError) as error:
            raise ValueError(
                f"{path} is not a kubeconfig for a webhook: {' '.join(str(error).split())}"
            ) from None
        if not self._url:
            raise ValueError(
                f"{path} is not a kubeconfig for a webhook: its current context has no cluster with a server"
            )

    async def ask(self, review: Object) -> Object:
        """Status of the review. Raises CallFailed if the call fails or the response is not a review."""
        return review_status(await self._post(orjson.dumps(review)))

    async def send(self, body: bytes) -> None:
        """Posts a body whose response has no content. Raises CallFailed unless it succeeds."""
        await self._post(body)

    async def close(self) -> None:
        """Closes idle connections. Only for a client with its own pool."""
        if self._connections is not None:
            await self._connections.close()

    async def _post(self, body: bytes) -> bytes:
        code, answer = await post(
            self._url,
            body,
            context=self._context,
            timeout=self._timeout,
            server_hostname=self._server_name,
            headers=self._headers,
            pool=self._connections,
        )
        if not 200 <= code < 300:
            raise CallFailed(_meaning(code), passing=code in (429, 500, 504))
        return answer

    def _path(self, name: str) -> Path:
        return self._where.parent / name

    def _data(self, section: Object, field: str) -> bytes:
        """Content of a field, given inline (`…-data`) or as a file name relative to the kubeconfig."""
        if section.get(f"{field}-data"):
            return base64.b64decode(section[f"{field}-data"])
        return self._path(section[field]).read_bytes() if section.get(field) else b""

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


def review_status(body: bytes) -> Object:
    """Status of a review in a response. Raises CallFailed if the response is not a review."""
    try:
        status = orjson.loads(body)["status"]
    except (ValueError, KeyError, TypeError):
        raise CallFailed("the webhook's answer is no review") from None
    if not isinstance(status, dict):
        raise CallFailed("the webhook's answer has no status")
    return status


def _named(config: Object, kind: str, name: str) -> Object:
    for entry in config.get(f"{kind}s") or ():
        if entry.get("name") == name:
            found: Object = entry.get(kind) or {}
            return found
    return {}


_MEANINGS = {
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}


def _meaning(code: int) -> str:
    """Message for a webhook's status code in the words of the reference's client."""
    if code in _MEANINGS:
        return _MEANINGS[code]
    if code >= 500:
        return 'an error on the server ("unknown") has prevented the request from succeeding'
    return f"the server responded with the status code {code} but did not return more information"
