"""A small HTTPS client for calls that the server makes itself (webhooks, issuers), on kept connections."""

from __future__ import annotations

import asyncio
import ssl
from urllib.parse import urlsplit

from kubist.eager import in_task
from kubist.http.pool import LIMIT, Where, begin, may_be_kept, pool


class CallFailed(Exception):
    """No usable answer: not reached, not trusted, too slow, or not HTTP."""


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
) -> tuple[int, bytes]:
    """POST a JSON body; the status and the body of the answer. `host` and `port` say where to connect if that
    is not where the URL points, `server_hostname` whom the certificate must name."""
    told = {"Content-Type": "application/json", "Content-Length": str(len(body)), **(headers or {})}
    return await _call("POST", url, body, context, timeout, host, port, server_hostname, told)


async def get(
    url: str,
    *,
    context: ssl.SSLContext,
    timeout: float,
    server_hostname: str = "",
    headers: dict[str, str] | None = None,
) -> tuple[int, bytes]:
    """The status and the body of what is at a URL."""
    return await _call("GET", url, b"", context, timeout, "", None, server_hostname, headers or {})


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
            return await _exchange(Where(where, at, context, server), head + body)
    except (OSError, asyncio.IncompleteReadError, ValueError) as error:
        raise CallFailed(f'{called} "{url}": {explain(error, f"{where}:{at}")}') from None


def explain(error: Exception, where: str) -> str:
    """Why a call to `where` failed, in the words that operators search for."""
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
    """Why a certificate was not believed."""
    if error.verify_code in _UNKNOWN_AUTHORITY:
        return "certificate signed by unknown authority"
    if error.verify_code in _OUT_OF_TIME:
        return "certificate has expired or is not yet valid"
    return error.verify_message


async def _exchange(where: Where, message: bytes) -> tuple[int, bytes]:
    connection, line = await begin(where, message)
    reader = connection.reader
    try:
        first = line.split(None, 2)
        if len(first) < 2 or not first[0].startswith(b"HTTP/"):
            raise ValueError("malformed HTTP response")
        headers: dict[str, str] = {}
        while (line := (await reader.readline()).strip()) != b"":
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()
        answer = int(first[1]), await _body(reader, headers)
    except BaseException:
        connection.abort()
        raise
    if may_be_kept(first[0], headers):
        pool().give(connection)
    else:
        connection.writer.close()
    return answer


async def _body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if "chunked" in headers.get("transfer-encoding", "").lower():
        pieces = []
        while size := int((await reader.readline()).split(b";")[0], 16):
            pieces.append(await reader.readexactly(size))
            await reader.readexactly(2)
        while (await reader.readline()).strip():
            pass
        return b"".join(pieces)
    if "content-length" in headers:
        return await reader.readexactly(int(headers["content-length"]))
    return await reader.read(LIMIT)
