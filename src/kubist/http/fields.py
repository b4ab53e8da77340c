"""The header list of an HTTP/2 request, checked as RFC 9113 (8.2, 8.3) asks and made a request's parts."""

from __future__ import annotations

import re
from typing import NamedTuple

from kubist.caching import bounded_cache
from kubist.http.hpack import Header

_FORBIDDEN_IN_VALUE = re.compile(rb"[\0\r\n]|^[ \t]|[ \t]$").search
_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-z]+").fullmatch
_CONNECTION_HEADERS = frozenset(
    {b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"}
)


class Malformed(Exception):
    """No HTTP request has such headers."""


class Fields(NamedTuple):
    method: str
    path: str
    query: str
    headers: dict[str, str]
    repeated: dict[str, list[str]] | None = None


@bounded_cache(entries=2048, key_length=64)
def _regular_name(name: bytes) -> str:
    if not _NAME(name) or name in _CONNECTION_HEADERS:
        raise Malformed
    return name.decode("ascii")


def request_fields(received: list[Header]) -> Fields:
    pseudo: dict[bytes, bytes] = {}
    headers: dict[str, str] = {}
    repeated: dict[str, list[str]] = {}
    for name, value in received:
        if _FORBIDDEN_IN_VALUE(value):
            raise Malformed
        if name[:1] == b":":
            if headers or name in pseudo:
                raise Malformed
            pseudo[name] = value
            continue
        key = _regular_name(name)
        text = value.decode("utf-8", "replace")
        if key in headers:
            if key in ("host", "content-length"):
                raise Malformed
            repeated.setdefault(key, [headers[key]]).append(text)
            text = f"{headers[key]}{'; ' if key == 'cookie' else ', '}{text}"
        elif key == "te" and value != b"trailers":
            raise Malformed
        headers[key] = text
    if not headers.get("content-length", "0").isdecimal():
        raise Malformed
    method = pseudo.pop(b":method", b"")
    target = pseudo.pop(b":path", b"")
    scheme = pseudo.pop(b":scheme", b"")
    authority = pseudo.pop(b":authority", None)
    if pseudo or not method or not scheme or not _NAME(method.lower()):
        raise Malformed
    if target[:1] != b"/" and target != b"*":
        raise Malformed
    if authority is not None:
        headers["host"] = authority.decode("utf-8", "replace")
    path, _, query = target.decode("utf-8", "replace").partition("?")
    return Fields(method.decode("ascii"), path, query, headers, repeated or None)


def check_trailers(received: list[Header]) -> None:
    for name, value in received:
        if not _NAME(name) or _FORBIDDEN_IN_VALUE(value):
            raise Malformed
