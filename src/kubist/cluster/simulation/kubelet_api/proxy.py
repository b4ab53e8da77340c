"""pods/proxy: an HTTP request to the target of a pod's port."""

from __future__ import annotations

from kubist.base import eager_task
from kubist.base.http.client.calls import explain
from kubist.base.http.client.pool import LIMIT, Where, begin
from kubist.base.http.client.responses import read_head, whole
from kubist.base.http.messages import Headers, Request, Response
from kubist.cluster.simulation.kubelet_api.portforward import Target, TargetError, explanation, target_of
from kubist.model.meta.object import Object
from kubist.model.meta.status import bad_request, unavailable

_OWN = frozenset(
    (
        "authorization",
        "connection",
        "content-length",
        "cookie",
        "host",
        "keep-alive",
        "proxy-authorization",
        "sec-websocket-protocol",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    )
)
"""Headers of the client that are not passed on: those of its connection, and its credentials."""
_IDENTITIES = ("impersonate-", "x-remote-", ":")
"""Prefixes of headers with the identity of a client, and of those of HTTP/2."""
_TRANSPORTS = frozenset(
    ("connection", "content-length", "date", "keep-alive", "transfer-encoding", "upgrade")
)


async def answer(request: Request, pod: Object, port: int, path: str, timeout: float) -> Response:
    try:
        target = target_of(pod, port, request)
    except TargetError as error:
        raise bad_request(str(error)) from None
    if target is None:
        headers: Headers = [(b"Content-Type", b"text/plain; charset=utf-8")]
        return Response(200, headers, explanation(pod, port).encode())
    try:
        async with eager_task.timeout(timeout):
            return await _forward(request, target, path)
    except (OSError, EOFError, ValueError) as error:
        raise unavailable(f"error trying to reach service: {explain(error, str(target))}") from None


async def _forward(request: Request, target: Target, path: str) -> Response:
    line = f"{request.method} {path}{'?' if request.query else ''}{request.query} HTTP/1.1"
    fields = [
        f"{name}: {value}"
        for name, value in request.headers.items()
        if name not in _OWN and not name.startswith(_IDENTITIES)
    ]
    own = [f"Host: {target}", "Connection: close", f"Content-Length: {len(request.body)}"]
    # Line breaks in a value are replaced, so that it cannot start another header.
    lines = [text.replace("\r", " ").replace("\n", " ") for text in (line, *own, *fields)]
    head = "\r\n".join(lines).encode("latin-1", "replace")
    message = head + b"\r\n\r\n" + request.body
    connection, first = await begin(
        None, Where(target.host, target.port, None, ""), message, replayable=False
    )
    try:
        answered = await read_head(connection.reader, first)
        empty = request.method == "HEAD" or answered.status in (204, 304)
        body = b"" if empty else await whole(connection.reader, answered, LIMIT)
    finally:
        connection.abort()
    headers = [
        (name.title().encode("latin-1"), value.encode("latin-1"))
        for name, value in answered.headers
        if name.lower() not in _TRANSPORTS
    ]
    return Response(answered.status, headers, body)
