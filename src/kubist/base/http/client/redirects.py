"""Redirects of calls to other servers, by the rules of Go's HTTP client.

301, 302 and 303 turn a POST into a GET without a body. 307 and 308 repeat the request.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import SplitResult, quote, urljoin, urlsplit, urlunsplit

from kubist.base.http.client.responses import Head

LIMIT = 10
"""Maximum number of requests of one call."""
PATH_SAFE = "/$&+,:;=@~"
"""Characters of a path, besides letters, digits and `-._`, that Go does not escape."""
PORTS = {"https": 443, "http": 80}

_SENSITIVE = ("authorization", "cookie")
_OF_BODY = ("content-type", "content-length")
_has_scheme = re.compile("[A-Za-z][A-Za-z0-9+.-]*:").match
_bad_escape = re.compile("%(?![0-9A-Fa-f]{2})").search


class Outgoing(NamedTuple):
    """Request to another server."""

    method: str
    url: str
    headers: dict[str, str]
    body: bytes


class RedirectFailed(ValueError):
    """Redirect that cannot be followed. `url` is the URL that the error message names."""

    def __init__(self, url: str, why: str) -> None:
        super().__init__(why)
        self.url = url


def next_request(sent: list[Outgoing], head: Head) -> Outgoing | None:
    """Request that follows from the response to the last of the sent requests. None if the response is not a
    redirect."""
    if head.status not in (301, 302, 303, 307, 308):
        return None
    location = head.get("location")
    if not location:
        return None
    first, last = sent[0], sent[-1]
    url = _resolved(last.url, location)
    repeats = head.status in (307, 308) and last.body == first.body
    method = last.method if head.status in (307, 308) else "GET"
    headers = _headers(first, url, with_body=repeats)
    if not (last.url.startswith("https:") and url.startswith("http:")):
        headers["Referer"] = last.url
    if len(sent) >= LIMIT:
        raise RedirectFailed(location, f"stopped after {LIMIT} redirects")
    return Outgoing(method, url, headers, first.body if repeats else b"")


def address(url: SplitResult) -> tuple[str, int]:
    """Host and port of a URL."""
    return url.hostname or "", url.port or PORTS.get(url.scheme, 0)


def _resolved(base: str, location: str) -> str:
    try:
        if _bad_escape(location):
            raise ValueError("invalid URL escape")
        parts = urlsplit(location if _has_scheme(location) else urljoin(base, location))
        host, _ = address(parts)
    except ValueError as error:
        raise RedirectFailed(base, f'failed to parse Location header "{location}": {error}') from None
    path = quote(parts.path, safe=PATH_SAFE + "%!'()*", encoding="latin-1")
    url = urlunsplit(
        parts._replace(path=path, fragment="", query=quote(parts.query, safe="/?%:@!$&'()*+,;="))
    )
    if parts.scheme not in PORTS:
        raise RedirectFailed(url, f'unsupported protocol scheme "{parts.scheme}"')
    if not host or not host.isascii() or not host.isprintable() or " " in host:
        raise RedirectFailed(url, "http: no Host in request URL")
    return url


def _headers(first: Outgoing, url: str, *, with_body: bool) -> dict[str, str]:
    """Headers of the first request, without credentials for another domain, and without those of a dropped body."""
    here, there = urlsplit(first.url).hostname or "", urlsplit(url).hostname or ""
    same_domain = there == here or there.endswith("." + here)
    return {
        name: value
        for name, value in first.headers.items()
        if (same_domain or name.lower() not in _SENSITIVE) and (with_body or name.lower() not in _OF_BODY)
    }
