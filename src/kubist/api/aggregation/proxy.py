"""Proxies a request to a backend. The caller has already authorized it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from string import punctuation
from urllib.parse import quote

from kubist.api.aggregation.backend import Backend, netloc
from kubist.api.aggregation.identity import PROTOCOLS, Credentials, Fields, identity_headers, without_token
from kubist.api.config import Config
from kubist.api.resources.context import Objects, User
from kubist.base import eager_task
from kubist.base.http.client.calls import CallFailed, explain
from kubist.base.http.client.pool import Connection, Pool, Where, begin
from kubist.base.http.client.responses import PIECE, SWITCHING, Head, pieces, read_head, whole
from kubist.base.http.http1.writers import Tunnel as ClientEnd
from kubist.base.http.messages import Answer, Headers, Request, Response, Stream, StreamWriter
from kubist.model.meta import status

log = logging.getLogger("kubist.aggregation")

REPLAYABLE = ("GET", "HEAD", "OPTIONS", "TRACE")
WHOLE = 256 << 10
"""Maximum size in bytes of a buffered body; larger bodies are streamed."""
_HOP_BY_HOP = {
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
}
_FORWARDED = {"x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-uri"}
_OURS = _HOP_BY_HOP | _FORWARDED | {"host", "content-length", PROTOCOLS}
_TRANSPORTS = _HOP_BY_HOP | {"audit-id", "content-length", "date"}
_CROSS_ORIGIN = {
    "access-control-allow-credentials",
    "access-control-allow-headers",
    "access-control-allow-methods",
    "access-control-allow-origin",
}
"""Only this server decides which pages may use the API from a browser (`--cors-allowed-origins`)."""


async def proxy(
    objects: Objects,
    config: Config,
    backend: Backend,
    available: bool,
    request: Request,
    user: User,
    credentials: Credentials,
    long_running: bool,
) -> Answer:
    """The backend's response; 503 in plain text if the backend is unavailable. The request timeout holds until the end
    of the body, unless the request is `long_running`."""
    if request.body_too_large:
        raise status.body_too_large()
    if not available:
        return unavailable("service unavailable")
    try:
        host, port = backend.address(objects)
    except CallFailed as error:
        log.warning("APIService %s: %s", backend.name, error)
        return unavailable("service unavailable")
    try:
        context = await backend.context(config)
    except (ValueError, OSError) as error:
        return plain(500, str(error))
    upgrade = wants_upgrade(request)
    try:
        message = _request_bytes(request, netloc(host, port), user, credentials, upgrade)
    except ValueError as error:
        return unavailable(f"error trying to reach service: {error}")
    replayable = request.method in REPLAYABLE and not request.body and not upgrade
    pool = objects.connections
    where = Where(host, port, context, backend.server_name)
    seconds = None if long_running else config.request_timeout
    deadline = None if seconds is None else asyncio.get_running_loop().time() + seconds
    try:
        async with eager_task.timeout(seconds):
            connection, line = await begin(pool, where, message, replayable=replayable)
            try:
                redirects = not config.aggregator_reject_forwarding_redirect
                return await _answer(
                    request, connection, pool, line, upgrade, redirects=redirects, deadline=deadline
                )
            except BaseException:
                connection.abort()
                raise
    except (OSError, EOFError, ValueError) as error:
        return unavailable(f"error trying to reach service: {explain(error, netloc(host, port))}")


async def _answer(
    request: Request,
    connection: Connection,
    pool: Pool | None,
    line: bytes,
    upgrade: bool,
    *,
    redirects: bool,
    deadline: float | None,
) -> Answer:
    reader = connection.reader
    head = await read_head(reader, line)
    if 300 <= head.status <= 399 and head.get("location") and not redirects:
        connection.abort()
        return plain(502, "the backend attempted to redirect this request, which is not permitted")
    headers = _response_headers(head)
    if head.status == SWITCHING:
        if not upgrade:
            raise ValueError("the backend switched protocols without being asked to")
        protocol = head.get("upgrade").encode("latin-1")
        return Tunnel(connection).stream([(b"Connection", b"Upgrade"), (b"Upgrade", protocol), *headers])
    if upgrade and head.status < 400:
        connection.abort()
        return unavailable(f"invalid upgrade response: status code {head.status}")
    length = head.get("content-length")
    empty = request.method == "HEAD" or head.status in (204, 304)
    if not empty and not (length.isdigit() and int(length) <= WHOLE):
        return Relay(head, reader, connection.writer, deadline).stream(headers)
    body = b"" if empty else await whole(reader, head, WHOLE)
    reusable = head.keeps and (empty or length) and "close" not in head.get("connection").lower()
    if reusable and pool is not None:
        pool.give(connection)
    else:
        connection.writer.close()
    return Response(head.status, headers, body)


def _request_bytes(request: Request, host: str, user: User, credentials: Credentials, upgrade: bool) -> bytes:
    target = f"{request.path}?{request.query}" if request.query else request.path
    # No `Connection: close` is sent, because data that a backend sends just before it closes may be lost in
    # TLS.
    own = [
        ("Host", host),
        *identity_headers(user),
        ("X-Forwarded-Uri", quote(request.path, safe=punctuation)),
        ("X-Forwarded-Host", host),
        ("X-Forwarded-Proto", "https"),
    ]
    if upgrade:
        own += [("Connection", "Upgrade"), ("Upgrade", request.headers["upgrade"])]
    if request.body or request.method in ("POST", "PUT", "PATCH"):
        own.append(("Content-Length", str(len(request.body))))
    lines = [f"{request.method} {quote(target, safe=punctuation)} HTTP/1.1".encode()]
    lines += [_header_line(name, value).encode() for name, value in own]
    lines += [
        _header_line(name, value).encode("latin-1", "replace")
        for name, value in _request_fields(request, credentials)
    ]
    return b"\r\n".join(lines) + b"\r\n\r\n" + request.body


def _header_line(name: str, value: str) -> str:
    """A header line. Line breaks in the value are replaced, so that it cannot start another header."""
    return f"{name}: {value}".replace("\r", " ").replace("\n", " ")


def _request_fields(request: Request, credentials: Credentials) -> Fields:
    """The client's headers without hop-by-hop headers and credentials."""
    named = _listed(request.headers.get("connection", ""))
    fields = [
        (name, value)
        for name in request.headers
        if name not in _OURS
        and name not in named
        and not name.startswith(":")
        and not credentials.named(name)
        for value in request.header_values(name)
    ]
    fields += [(PROTOCOLS, value) for value in map(without_token, request.header_values(PROTOCOLS)) if value]
    came_from = [*request.header_values("x-forwarded-for"), *filter(None, [request.peer[0]])]
    return [*fields, ("X-Forwarded-For", ", ".join(came_from))] if came_from else fields


def _response_headers(head: Head) -> Headers:
    dropped = _TRANSPORTS | _CROSS_ORIGIN
    for name, value in head.headers:
        if name.lower() == "connection":
            dropped |= _listed(value)
    return [
        (name.title().encode("latin-1"), value.encode("latin-1"))
        for name, value in head.headers
        if name.lower() not in dropped
    ]


def _listed(connection: str) -> set[str]:
    """Headers that a Connection header names. They are for one connection only."""
    return {name.strip().lower() for name in connection.split(",")}


def unavailable(why: str) -> Response:
    return plain(503, why)


def plain(code: int, text: str) -> Response:
    headers = [(b"Content-Type", b"text/plain; charset=utf-8"), (b"X-Content-Type-Options", b"nosniff")]
    return Response(code, headers, text.encode() + b"\n")


_HIGH_WATER = 1 << 20
"""Buffered bytes for the client above which the proxy stops reading from the backend."""
_PAUSE_SECONDS = 0.02


class Relay:
    """A response body in transit from a backend to a client. Either side may disconnect. At the deadline, a time of the
    event loop, the response is aborted."""

    def __init__(
        self,
        head: Head,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        deadline: float | None,
    ) -> None:
        self._head = head
        self._reader = reader
        self._backend = writer
        self._deadline = deadline
        self._task: asyncio.Task[None] | None = None

    def stream(self, headers: Headers) -> Stream:
        return Stream(self._head.status, headers, self._start, self._stopped)

    def _start(self, client: StreamWriter) -> None:
        self._task = asyncio.ensure_future(self._pass_on(client))

    def _stopped(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self._backend.transport.abort()

    async def _pass_on(self, client: StreamWriter) -> None:
        now = asyncio.get_running_loop().time()
        try:
            async with eager_task.timeout(None if self._deadline is None else max(self._deadline - now, 0)):
                async for piece in pieces(self._reader, self._head):
                    client.write(piece)
                    # The writer cannot signal that it has drained, so it is polled.
                    while client.buffered > _HIGH_WATER and not client.closed:  # noqa: ASYNC110
                        await asyncio.sleep(_PAUSE_SECONDS)
            client.close()
        except (OSError, EOFError, ValueError):
            # Aborts, because an incomplete body must not look complete.
            client.abort()
        finally:
            with contextlib.suppress(OSError):
                self._backend.close()


def wants_upgrade(request: Request) -> bool:
    named = {name.strip().lower() for name in request.headers.get("connection", "").split(",")}
    return request.http_version == "1.1" and "upgrade" in named and bool(request.headers.get("upgrade"))


class Tunnel:
    """A client connection and a backend connection, joined."""

    def __init__(self, backend: Connection) -> None:
        self._backend = backend
        self._client: StreamWriter | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._full = False

    def stream(self, headers: Headers) -> Stream:
        return Stream(101, headers, self._start, self._stopped, received=self._from_client)

    def _start(self, client: StreamWriter) -> None:
        self._client = client
        self._tasks.append(asyncio.ensure_future(self._to_client(client)))

    def _stopped(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._backend.abort()

    def _from_client(self, data: bytes) -> None:
        writer = self._backend.writer
        writer.write(data)
        if writer.transport.get_write_buffer_size() > _HIGH_WATER and not self._full:
            self._full = True
            self._tasks.append(asyncio.ensure_future(self._wait_for_backend()))

    async def _wait_for_backend(self) -> None:
        assert isinstance(self._client, ClientEnd)
        self._client.listen(False)
        with contextlib.suppress(OSError):
            await self._backend.writer.drain()
        self._full = False
        self._client.listen(True)

    async def _to_client(self, client: StreamWriter) -> None:
        try:
            while piece := await self._backend.reader.read(PIECE):
                client.write(piece)
                # The writer cannot signal that it has drained, so it is polled.
                while client.buffered > _HIGH_WATER and not client.closed:  # noqa: ASYNC110
                    await asyncio.sleep(_PAUSE_SECONDS)
        except OSError:
            client.abort()
        client.close()
