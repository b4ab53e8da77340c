"""Small HTTPS client for the server's own calls (webhooks, token issuers), on pooled connections."""

from __future__ import annotations

import ssl
from typing import NamedTuple
from urllib.parse import urlsplit

from kubist.base import eager_task
from kubist.base.http.client.pool import LIMIT, Connection, Pool, Where, begin, may_be_kept
from kubist.base.http.client.redirects import Outgoing, RedirectFailed, address, next_request
from kubist.base.http.client.responses import Head, read_head, whole


class CallFailed(Exception):
    """Call without a usable response: connection, TLS, timeout or HTTP error. `passing`: a retry may succeed."""

    def __init__(self, why: str, *, passing: bool = False) -> None:
        super().__init__(why)
        self.passing = passing


class Calling(NamedTuple):
    """Settings that apply to all requests of a call.

    `host` and `port` override the address in the URL. `server_hostname` is the name that certificates must
    have. `pool` keeps connections open.
    """

    context: ssl.SSLContext
    host: str = ""
    port: int | None = None
    server_hostname: str = ""
    pool: Pool | None = None


async def post(
    url: str,
    body: bytes,
    *,
    context: ssl.SSLContext,
    timeout: float,
    host: str = "",
    port: int | None = None,
    server_hostname: str = "",
    headers: dict[str, str] | None = None,
    pool: Pool | None = None,
) -> tuple[int, bytes]:
    """POSTs a JSON body and returns status and body of the response. Follows redirects.

    `Calling` describes the other arguments.
    """
    sent_headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), **(headers or {})}
    calling = Calling(context, host, port, server_hostname, pool)
    return await _call(calling, Outgoing("POST", url, sent_headers, body), timeout, follows=True)


async def get(
    url: str,
    *,
    context: ssl.SSLContext,
    timeout: float,
    server_hostname: str = "",
    headers: dict[str, str] | None = None,
    pool: Pool | None = None,
    follows: bool = True,
) -> tuple[int, bytes]:
    """GETs a URL and returns status and body of the response. `follows`: redirects are followed."""
    calling = Calling(context, server_hostname=server_hostname, pool=pool)
    return await _call(calling, Outgoing("GET", url, headers or {}, b""), timeout, follows=follows)


async def _call(calling: Calling, request: Outgoing, timeout: float, *, follows: bool) -> tuple[int, bytes]:
    called = request.method.capitalize()
    sent: list[Outgoing] = []
    try:
        async with eager_task.timeout(timeout):
            while True:
                sent.append(request)
                head, body = await _exchange(calling, request, sent[0])
                following = next_request(sent, head) if follows else None
                if following is None:
                    return head.status, body
                request = following
    except RedirectFailed as error:
        raise CallFailed(f'{called} "{error.url}": {error}') from None
    except (OSError, EOFError, ValueError) as error:
        host, port = _where(calling, request, sent[:1])
        why = explain(error, f"{host}:{port}")
        passing = isinstance(error, ConnectionResetError)
        raise CallFailed(f'{called} "{request.url}": {why}', passing=passing) from None


async def _exchange(calling: Calling, request: Outgoing, first: Outgoing) -> tuple[Head, bytes]:
    """Sends one request and reads the response."""
    parts = urlsplit(request.url)
    target = parts.path or "/"
    if parts.query:
        target += f"?{parts.query}"
    lines = [
        f"{request.method} {target} HTTP/1.1",
        f"Host: {parts.netloc.rpartition('@')[2]}",
        "Accept: application/json, */*",
        *(f"{name}: {value}" for name, value in request.headers.items()),
    ]
    message = "\r\n".join(lines).encode() + b"\r\n\r\n" + request.body
    host, port = _where(calling, request, [first])
    context = None if parts.scheme == "http" else calling.context
    there = Where(host, port, context, calling.server_hostname or parts.hostname or "")
    connection, line = await begin(calling.pool, there, message, replayable=request.method == "GET")
    return await _answer(connection, line, calling.pool)


def _where(calling: Calling, request: Outgoing, first: list[Outgoing]) -> tuple[str, int]:
    """Address to connect to: the configured one for the server of the first request, otherwise the one in the URL."""
    host, port = address(urlsplit(request.url))
    if all(address(urlsplit(other.url)) == (host, port) for other in first):
        return calling.host or host, calling.port or port
    return host, port


def explain(error: Exception, where: str) -> str:
    """Error message for a failed call to `where`, in the words of Go's HTTP client."""
    if isinstance(error, TimeoutError):
        return "context deadline exceeded"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"tls: failed to verify certificate: x509: {_distrust(error)}"
    if isinstance(error, ssl.SSLError):
        return f"tls: {error.reason}"
    if isinstance(error, ConnectionRefusedError):
        return f"dial tcp {where}: connect: connection refused"
    return str(error)


_UNKNOWN_AUTHORITY = (18, 19, 20, 21)
_OUT_OF_TIME = (9, 10)


def _distrust(error: ssl.SSLCertVerificationError) -> str:
    """Error message for a certificate that failed verification."""
    if error.verify_code in _UNKNOWN_AUTHORITY:
        return "certificate signed by unknown authority"
    if error.verify_code in _OUT_OF_TIME:
        return "certificate has expired or is not yet valid"
    return error.verify_message


async def _answer(connection: Connection, line: bytes, pool: Pool | None) -> tuple[Head, bytes]:
    try:
        head = await read_head(connection.reader, line)
        body = await whole(connection.reader, head, LIMIT)
    except BaseException:
        connection.abort()
        raise
    if pool is None:
        connection.writer.close()
    elif may_be_kept(head):
        pool.give(connection)
    else:
        pool.drop(connection)
    return head, body
