"""Small HTTPS client for the server's own calls (webhooks, token issuers), on pooled connections."""

from __future__ import annotations

import asyncio
import ssl
from urllib.parse import urlsplit

from kubist.eager_task import in_task
from kubist.http.answers import Head, pieces, read_head
from kubist.http.pool import LIMIT, Connection, Pool, Where, begin, may_be_kept


class CallFailed(Exception):
    """Call without a usable response: connection, TLS, timeout or HTTP error. `passing`: a retry may succeed."""

    def __init__(self, why: str, *, passing: bool = False) -> None:
        super().__init__(why)
        self.passing = passing


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
    """POSTs a JSON body and returns status and body of the response.

    `host` and `port` override the address in the URL. `server_hostname` is the name that the certificate must
    have. `pool` keeps the connection open.
    """
    told = {"Content-Type": "application/json", "Content-Length": str(len(body)), **(headers or {})}
    return await _call("POST", url, body, context, timeout, host, port, server_hostname, told, pool)


async def get(
    url: str,
    *,
    context: ssl.SSLContext,
    timeout: float,
    server_hostname: str = "",
    headers: dict[str, str] | None = None,
    pool: Pool | None = None,
) -> tuple[int, bytes]:
    """GETs a URL and returns status and body of the response. `pool` keeps the connection open."""
    return await _call("GET", url, b"", context, timeout, "", None, server_hostname, headers or {}, pool)


async def _call(
    method: str,
    url: str,
    body: bytes,
    context: ssl.SSLContext,
    timeout: float,
    host: str,
    port: int | None,
    server_hostname: str,
    headers: dict[str, str],
    pool: Pool | None,
) -> tuple[int, bytes]:
    called = method.capitalize()
    parts = urlsplit(url)
    target = parts.path or "/"
    if parts.query:
        target += f"?{parts.query}"
    where, at = host or parts.hostname or "", port or parts.port or 443
    lines = [
        f"{method} {target} HTTP/1.1",
        f"Host: {parts.netloc}",
        "Accept: application/json, */*",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    head = "\r\n".join(lines).encode() + b"\r\n\r\n"
    try:
        await in_task()
        async with asyncio.timeout(timeout):
            server = server_hostname or parts.hostname or ""
            there = Where(where, at, context, server)
            connection, line = await begin(pool, there, head + body, replayable=method == "GET")
            return await _answer(connection, line, pool)
    except (OSError, EOFError, ValueError) as error:
        why = explain(error, f"{where}:{at}")
        passing = isinstance(error, ConnectionResetError)
        raise CallFailed(f'{called} "{url}": {why}', passing=passing) from None


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


async def _answer(connection: Connection, line: bytes, pool: Pool | None) -> tuple[int, bytes]:
    try:
        head = await read_head(connection.reader, line)
        body = await _body(connection.reader, head)
    except BaseException:
        connection.abort()
        raise
    if pool is not None and may_be_kept(head):
        pool.give(connection)
    else:
        connection.writer.close()
    return head.status, body


async def _body(reader: asyncio.StreamReader, head: Head) -> bytes:
    body = bytearray()
    async for piece in pieces(reader, head):
        body += piece
        if len(body) > LIMIT:
            raise ValueError(f"the response has more than {LIMIT} bytes")
    return bytes(body)
