"""Client of a webhook that a kubeconfig file configures: server, CA and the API server's credentials."""

from __future__ import annotations

from pathlib import Path

import orjson

from kubist.api.filters.kubeconfig import read_kubeconfig
from kubist.api.webhooks.reviews import LARGE, parse_large
from kubist.base.http.client.calls import CallFailed, post
from kubist.base.http.client.pool import Pool
from kubist.base.http.tls.contexts import stamp
from kubist.base.jsontext.errors import DecodeError
from kubist.base.offload import away
from kubist.model.meta.object import Object


class RemoteReview:
    """Posts reviews to the server of the current context and returns their status."""

    def __init__(self, path: str, connections: Pool | None = None, timeout: float = 30.0) -> None:
        self._connections = connections
        self._timeout = timeout
        self._server = read_kubeconfig(path, "for a webhook")
        self._token_files = [self._server.token_file] if self._server.token_file else []
        self._stamp = stamp(self._token_files)

    async def ask(self, review: Object) -> Object:
        """Status of the review. Raises CallFailed if the call fails or the response is not a review."""
        answer = await self._post(orjson.dumps(review))
        return await away(len(answer) > LARGE, review_status, answer, review)

    async def send(self, body: bytes) -> None:
        """Posts a body and expects no content in the response. Raises CallFailed unless it succeeds."""
        await self._post(body)

    async def close(self) -> None:
        """Closes idle connections. Only for a client with its own pool."""
        if self._connections is not None:
            await self._connections.close()

    def _headers(self) -> dict[str, str]:
        """Headers with credentials. A replaced tokenFile is read again; an empty one is not used."""
        new_stamp = stamp(self._token_files)
        if new_stamp != self._stamp:
            try:
                token = Path(self._server.token_file).read_text().strip()
            except (OSError, ValueError):
                token = ""
            if token:
                self._server.headers["Authorization"] = f"Bearer {token}"
                self._stamp = new_stamp
        return self._server.headers

    async def _post(self, body: bytes) -> bytes:
        code, answer = await post(
            self._server.url,
            body,
            context=self._server.context,
            timeout=self._timeout,
            server_hostname=self._server.server_name,
            headers=self._headers(),
            pool=self._connections,
        )
        if not 200 <= code < 300:
            raise CallFailed(_meaning(code), passing=code in (429, 500, 504))
        return answer


_TYPES: dict[str, type] = {
    "allowed": bool,
    "denied": bool,
    "authenticated": bool,
    "reason": str,
    "error": str,
    "evaluationError": str,
}


def review_status(body: bytes, review: Object) -> Object:
    """Status of a response to a review. Raises CallFailed if the response is not a review of the same kind, or if a
    field of its status has the wrong type. A string is not a decision: "false" must not allow a request."""
    try:
        answer = parse_large(body)
        status = answer["status"]
    except (DecodeError, ValueError, KeyError, TypeError):
        raise CallFailed("the webhook's answer is no review") from None
    if not isinstance(status, dict):
        raise CallFailed("the webhook's answer has no status")
    if answer.get("kind") not in (None, "", review["kind"]):
        raise CallFailed(f"the webhook's answer is no {review['kind']}")
    for name, expected in _TYPES.items():
        if status.get(name) is not None and not isinstance(status[name], expected):
            raise CallFailed(f"the webhook's answer is malformed: status.{name} has the wrong type")
    return status


_MEANINGS = {
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}


def _meaning(code: int) -> str:
    """client-go's message for a webhook's status code."""
    if code in _MEANINGS:
        return _MEANINGS[code]
    if code >= 500:
        return 'an error on the server ("unknown") has prevented the request from succeeding'
    return f"the server responded with the status code {code} but did not return more information"
