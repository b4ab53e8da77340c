"""Response headers for browsers: CORS (`--cors-allowed-origins`) and HSTS (`--strict-transport-security-directives`),
and uncompressed responses. Both wrap the whole application."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

from kubist.base.http.messages import Answer, Application, Headers, Request, Response

ALLOWED = (
    (b"Access-Control-Allow-Methods", b"POST, GET, OPTIONS, PUT, DELETE, PATCH"),
    (
        b"Access-Control-Allow-Headers",
        b"Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, "
        b"If-Modified-Since",
    ),
    (b"Access-Control-Expose-Headers", b"Date"),
    (b"Access-Control-Allow-Credentials", b"true"),
)


def with_browser_headers(
    application: Application, origins: Sequence[str], directives: Sequence[str]
) -> Application:
    """The application with the headers that the flags configure; the application itself if the flags are unset."""
    patterns = [_pattern(origin) for origin in origins]
    always = _transport_security(directives)
    if not patterns and not always:
        return application

    async def answer(request: Request) -> Answer:
        origin = request.headers.get("origin", "")
        if not origin or not any(pattern.search(origin) for pattern in patterns):
            return _with_headers(await application(request), always)
        allowed = [(b"Access-Control-Allow-Origin", origin.encode("latin-1", "replace")), *ALLOWED]
        if request.method == "OPTIONS":
            return Response(204, [*allowed, *always])
        return _with_headers(await application(request), [*allowed, *always])

    return answer


def without_compression(application: Application) -> Application:
    """The application for clients that accept no encoding, so that no response is compressed."""

    async def answer(request: Request) -> Answer:
        request.headers = {
            name: value for name, value in request.headers.items() if name != "accept-encoding"
        }
        return await application(request)

    return answer


def _with_headers(answer: Answer, more: Headers) -> Answer:
    """Returns a copy, because many requests may share one response."""
    return dataclasses.replace(answer, headers=[*answer.headers, *more]) if more else answer


def _pattern(origin: str) -> Any:
    """Compiled pattern of `--cors-allowed-origins`, in RE2 syntax. The pattern must be anchored, because
    otherwise it would also match foreign origins such as example.com.attacker.org."""
    # Saves start-up time: only --cors-allowed-origins needs it.
    from kubist.model.cel import regex

    try:
        pattern = regex.compile(origin)
    except ValueError as error:
        raise ValueError(f"--cors-allowed-origins has an invalid regular expression: {error}") from None
    if not re.search(r"\^|//", origin) or not re.search("[$:]", origin):
        raise ValueError(
            "--cors-allowed-origins has an invalid regular expression: regular expression does not pin to "
            f"start/end of host in the origin header: {origin}; write it like //example\\.com(:|$)"
        )
    return pattern


def _transport_security(directives: Sequence[str]) -> Headers:
    for directive in directives:
        if directive not in ("includeSubDomains", "preload") and not re.fullmatch("max-age=[^=]*", directive):
            raise ValueError(
                "--strict-transport-security-directives invalid, allowed values: max-age=expireTime, "
                f"includeSubDomains, preload; not {directive}"
            )
    return [(b"Strict-Transport-Security", "; ".join(directives).encode())] if directives else []
