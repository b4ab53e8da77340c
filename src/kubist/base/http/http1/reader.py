"""Parser of HTTP/1.1 requests, on llhttp, with the checks that llhttp leaves out.

It passes complete requests to its connection, and a request whose body is too large as soon as the limit is passed.
`known_heads.py` is an optimisation for headers that a client repeats.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import TYPE_CHECKING

import httptools

from kubist.base.http.bodies import Pieces, add, joined
from kubist.base.http.connection import NEVER, header_name
from kubist.base.http.http1.known_heads import KnownHeads
from kubist.base.http.http2.fields import BROKEN_ESCAPE, METHOD_LENGTH, join_repeated
from kubist.base.http.messages import Request, Response

if TYPE_CHECKING:
    from kubist.base.http.http1.connection import Http1


_COMMON = re.compile(rb"(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|TRACE|CONNECT) |[\r\n]")
"""Start of a message that llhttp reads itself: a method, or an empty line before the request."""
_METHOD = re.compile(rb"([\w!#$%&'*+.^`|~-]+)( ?)", re.ASCII)
_STAND_IN = b"GET "
"""Method that llhttp sees instead of an uncommon method, because it rejects most of those."""
_HOST = re.compile(r"[\w!$%&'()*+,./:;=?@\[\]~-]*", re.ASCII)
_UNSUPPORTED_VERSION = "unsupported protocol version"
_PLAIN_TEXT = (b"Content-Type", b"text/plain; charset=utf-8")


class Refusal(Exception):
    """Request that is malformed or rejected by the transport. The connection ends with this status."""

    def __init__(self, status: int, why: str = "") -> None:
        super().__init__(status, why)
        self.status = status
        self.why = why

    def response(self) -> Response:
        """Plain text, as from Go's HTTP server, because the request has not reached the API."""
        status = HTTPStatus(self.status)
        if status is HTTPStatus.EXPECTATION_FAILED:
            return Response(status, [])
        if status is HTTPStatus.NOT_IMPLEMENTED:
            return Response(status, [_PLAIN_TEXT], self.why.encode())
        text = (
            f"{status.value} {status.phrase}: {self.why}" if self.why else f"{status.value} {status.phrase}"
        )
        return Response(status.value, [_PLAIN_TEXT], text.encode())


class Reader:
    """Request that is being received. The `on_` methods are callbacks of the parser."""

    __slots__ = (
        "_begun", "_bodiless", "_body", "_body_size", "_connection", "_head_count", "_head_left", "_headers",
        "_in_head", "_known_heads", "_limits", "_method", "_oversized", "_parser", "_repeated", "_start", "_url",
        "_version", "in_body",
    )  # fmt: skip

    def __init__(self, connection: Http1) -> None:
        self._connection = connection
        self._limits = connection.host.limits
        self._parser = httptools.HttpRequestParser(self)
        self._known_heads = KnownHeads(self._limits.body_bytes)
        self._begun = 0
        self._in_head = False
        self.in_body = False
        self._start = b""
        """First bytes of a request whose method is incomplete."""
        self._method = ""
        """Uncommon method of the request, which llhttp sees as GET."""
        self._url = b""
        self._version = "1.1"
        self._headers: dict[str, str] = {}
        self._repeated: dict[str, list[str]] | None = None
        self._head_left = 0
        self._head_count = 0
        self._body: Pieces = []
        self._body_size = 0
        self._bodiless = 0
        """Bytes received since the last piece of the body: trailers and chunk extensions. Negative: a piece has just
        arrived."""
        self._oversized = False

    @property
    def in_message(self) -> bool:
        return self._in_head or self.in_body or bool(self._start)

    def feed(self, data: bytes) -> None:
        begins = not self._in_head and not self.in_body
        if begins and (request := self._known_heads.recognize(data, self._connection)) is not None:
            self._connection.deadline = NEVER
            self._connection.take(request)
            return
        if begins and (self._start or _COMMON.match(data) is None):
            data = self._take_method(self._start + data)
            if not data:
                return
        self._begun = 0
        self._parse(data)
        if begins and self._begun == 1 and self._version == "1.1" and not self._repeated:
            self._known_heads.add(data, self._headers)

    def _take_method(self, data: bytes) -> bytes:
        """Replaces an uncommon method with GET. Returns no bytes while the method is incomplete."""
        self._start = b""
        match = _METHOD.match(data)
        if match is None or len(match[1]) > METHOD_LENGTH:
            raise Refusal(400)
        if not match[2]:
            if match.end() < len(data):
                raise Refusal(400)
            self._start = data
            self._connection.deadline = self._connection.host.now + self._limits.header_timeout
            return b""
        if _COMMON.match(data):
            return data
        self._method = match[1].decode("ascii")
        return _STAND_IN + data[match.end() :]

    def _parse(self, data: bytes) -> None:
        try:
            while data:
                try:
                    self._parser.feed_data(data)
                    break
                except httptools.HttpParserUpgrade as upgrade:
                    # If the application ignores the upgrade, the client continues with HTTP.
                    self._parser = httptools.HttpRequestParser(self)
                    data = data[upgrade.args[0] :]
        except httptools.HttpParserCallbackError as error:
            if isinstance(error.__context__, Refusal):
                raise error.__context__ from None
            raise
        except httptools.HttpParserError as error:
            if str(error) == "Invalid HTTP version":
                raise Refusal(505, _UNSUPPORTED_VERSION) from None
            raise Refusal(400) from None
        if self._in_head:
            self._head_left -= len(data)
            if self._head_left < 0:
                raise Refusal(431)
        elif self.in_body:
            self._bodiless = 0 if self._bodiless < 0 else self._bodiless + len(data)
            if self._bodiless > self._limits.header_bytes:
                raise Refusal(431)

    def abandon(self) -> None:
        """Stops receiving this message, and drops what was received."""
        self._in_head = self.in_body = False
        self._start, self._url, self._headers, self._repeated, self._body = b"", b"", {}, None, []

    def close(self) -> None:
        """Breaks reference cycles after the connection is lost."""
        del self._parser, self._connection

    def on_message_begin(self) -> None:
        self._begun += 1
        self._in_head = True
        self._url = b""
        self._headers = {}
        self._repeated = None
        self._head_left = self._limits.header_bytes
        self._head_count = self._limits.header_count
        self._connection.deadline = self._connection.host.now + self._limits.header_timeout

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_left -= len(name) + len(value)
        self._head_count -= 1
        if self._head_left < 0 or self._head_count < 0:
            raise Refusal(431)
        if self.in_body:
            return
        key = header_name(name)
        text = value.decode("utf-8", "replace")
        if key in self._headers:
            if key == "host":
                raise Refusal(400)
            if self._repeated is None:
                self._repeated = {}
            self._repeated.setdefault(key, [self._headers[key]]).append(text)
        else:
            self._headers[key] = text

    def on_headers_complete(self) -> None:
        self._in_head = False
        self.in_body = True
        self._body = []
        self._body_size = self._bodiless = 0
        self._oversized = False
        headers = self._headers
        if self._repeated is not None:
            join_repeated(headers, self._repeated)
        self._version = version = self._parser.get_http_version()
        if version != "1.1" and version != "1.0":
            if version == "0.9":
                raise Refusal(400)
            raise Refusal(505, _UNSUPPORTED_VERSION)
        host = headers.get("host")
        if host is None:
            if version == "1.1":
                raise Refusal(400, "missing required Host header")
        elif _HOST.fullmatch(host) is None:
            raise Refusal(400, "malformed Host header")
        longest = self._limits.path_bytes
        if len(self._url) > longest and self._url.find(b"?", 0, longest + 1) < 0:
            raise Refusal(414)
        encoding = headers.get("transfer-encoding")
        if self._parser.should_upgrade() and (
            encoding is not None or headers.get("content-length", "0") != "0"
        ):
            # The parser would read the body as the next request.
            raise Refusal(400)
        if encoding is not None:
            if version != "1.1":
                raise Refusal(400)
            if encoding.lower() != "chunked":
                raise Refusal(501, "Unsupported transfer encoding")
        elif "content-length" not in headers:
            return
        self._connection.deadline = self._connection.host.now + self._limits.body_timeout
        if encoding is None and int(headers["content-length"]) > self._limits.body_bytes:
            self._oversize()
        elif "expect" in headers and version == "1.1":
            if headers["expect"].lower() != "100-continue":
                raise Refusal(417)
            self._connection.expect_body()

    def on_body(self, data: bytes) -> None:
        self._bodiless = -1
        if self._oversized:
            self._connection.heard = True
            return
        add(self._body, data)
        self._body_size += len(data)
        if self._body_size > self._limits.body_bytes:
            self._oversize()

    def on_message_complete(self) -> None:
        self.in_body = False
        self._connection.deadline = NEVER
        if self._oversized:
            return
        self._connection.take(self._request(joined(self._body)))
        self._body = []

    def _oversize(self) -> None:
        self._oversized = True
        self._body = []
        request = self._request(b"")
        request.body_too_large = True
        self._connection.take(request)

    def _request(self, body: bytes) -> Request:
        connection = self._connection
        method, self._method = self._method or self._parser.get_method().decode("ascii"), ""
        target = self._url.decode("ascii", "replace")
        if target[0] != "/" and target != "*":
            # Absolute form, as sent to a proxy. The target of CONNECT has no path.
            _, scheme, rest = target.partition("://")
            if not scheme:
                raise Refusal(400)
            authority, slash, path = rest.partition("/")
            if not slash:
                path = authority.partition("?")[2] and f"?{authority.partition('?')[2]}"
            target = f"/{path}"
        path, _, query = target.partition("?")
        if "%" in path and BROKEN_ESCAPE.search(path):
            raise Refusal(400)
        return Request(
            method,
            path,
            query,
            self._headers,
            body,
            connection.peer,
            self._version,
            connection.peer_certificates,
            connection.scratch,
            False,
            self._repeated,
        )
