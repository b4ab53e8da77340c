"""Continue tokens: where a chunked list goes on, and at which version. Opaque to clients, the reference's form."""

from __future__ import annotations

import base64
import posixpath

import orjson

from kubist.meta import status

VERSION = "meta.k8s.io/v1"
ANY = -1
"""A token with this version goes on in whatever the state is then."""


def encode(revision: int, start: str) -> str:
    """`start` is the first key of the next chunk, relative to the list's prefix."""
    raw = orjson.dumps({"v": VERSION, "rv": revision, "start": start})
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def decode(token: str) -> tuple[int, str]:
    """Version and relative start key of a token."""
    try:
        raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        if not token.isascii() or base64.urlsafe_b64encode(raw).rstrip(b"=").decode() != token:
            raise ValueError
        value = orjson.loads(raw)
        if not isinstance(value, dict):
            raise ValueError
        version, revision, start = value.get("v", ""), value.get("rv", 0), value.get("start", "")
        if not isinstance(version, str) or not isinstance(revision, int) or not isinstance(start, str):
            raise ValueError
    except ValueError:
        raise _invalid("") from None
    if version != VERSION:
        raise _invalid(f': server does not recognize this encoded version "{version}"')
    if revision == 0:
        raise _invalid(f": incorrect encoded start resourceVersion (version {VERSION})")
    if not start:
        raise _invalid(f": encoded start key empty (version {VERSION})")
    key = start if start.startswith("/") else "/" + start
    if posixpath.normpath(key) != key.rstrip("/") and posixpath.normpath(key) + "/" != key:
        raise _invalid(f": {start}")
    return revision, key[1:]


def _invalid(why: str) -> status.APIError:
    return status.bad_request(f"continue key is not valid{why}")
