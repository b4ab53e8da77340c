"""Header fields of an HTTP/2 request: validation by RFC 9113 (8.2, 8.3) and conversion to parts of a request."""

from __future__ import annotations

import re
from typing import NamedTuple

from kubist.base.caching import bounded_cache
from kubist.base.http.http2.hpack import Header

_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-z]+").fullmatch
_LENGTH = re.compile(r"[0-9]{1,18}").fullmatch
_CONNECTION_HEADERS = frozenset(
    {b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"}
)
_LF, _CR = b"\n\r"
"""Integers, because searching bytes in bytes first raises and clears a TypeError, which costs more than the search."""
BROKEN_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")
"""Percent sign in a path that starts no escape."""
METHOD_LENGTH = 64
"""Maximum length of a method in bytes. Registered methods have at most 17."""


class Malformed(Exception):
    """Header fields that do not form a valid HTTP request."""


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
    repeated: dict[str, list[str]] | None = None
    for name, value in received:
        if _LF in value or _CR in value or 0 in value or value != value.strip(b" \t"):
            raise Malformed
        if name[:1] == b":":
            if headers or name in pseudo:
                raise Malformed
            pseudo[name] = value
            continue
        key = _regular_name(name)
        text = value.decode("utf-8", "replace")
        if key == "te" and value != b"trailers":
            raise Malformed
        if key in headers:
            if key in ("host", "content-length"):
                raise Malformed
            if repeated is None:
                repeated = {}
            repeated.setdefault(key, [headers[key]]).append(text)
        else:
            headers[key] = text
    if repeated is not None:
        join_repeated(headers, repeated)
    if "content-length" in headers and not _LENGTH(headers["content-length"]):
        raise Malformed
    method = pseudo.pop(b":method", b"")
    target = pseudo.pop(b":path", b"")
    scheme = pseudo.pop(b":scheme", b"")
    authority = pseudo.pop(b":authority", None)
    if pseudo or not method or len(method) > METHOD_LENGTH or not scheme or not _NAME(method.lower()):
        raise Malformed
    if target[:1] != b"/" and target != b"*":
        raise Malformed
    if authority is not None:
        headers["host"] = authority.decode("utf-8", "replace")
    path, _, query = target.decode("utf-8", "replace").partition("?")
    if "%" in path and BROKEN_ESCAPE.search(path):
        raise Malformed
    return Fields(method.decode("ascii"), path, query, headers, repeated)


def join_repeated(headers: dict[str, str], repeated: dict[str, list[str]]) -> None:
    """Joins the values of each repeated header in order. Done once per request, so that it takes linear time."""
    for key, values in repeated.items():
        headers[key] = ("; " if key == "cookie" else ", ").join(values)


def check_trailers(received: list[Header], *, end: bool) -> None:
    """Raises Malformed unless these headers may end a request."""
    if not end:
        raise Malformed
    for name, value in received:
        if not _NAME(name) or _LF in value or _CR in value or 0 in value:
            raise Malformed
