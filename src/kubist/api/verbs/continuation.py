"""Continue tokens: start key and resource version of the next chunk of a list, in the reference's form."""

from __future__ import annotations

import base64
import posixpath
import re
from typing import Any

import orjson

from kubist.base.jsontext import json
from kubist.base.jsontext.errors import DecodeError
from kubist.base.jsontext.json import json_type
from kubist.model.meta import status

VERSION = "meta.k8s.io/v1"
_ALPHABET = re.compile(r"[A-Za-z0-9_-]*")
_LINE_BREAKS = {ord("\r"): None, ord("\n"): None}
ANY = -1
"""Version of a token that continues a list in the newest state."""


def encode(revision: int, start: str) -> str:
    """`start` is the first key of the next chunk, relative to the list's prefix."""
    raw = orjson.dumps({"v": VERSION, "rv": revision, "start": start})
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def decode(token: str) -> tuple[int, str]:
    """Version and relative start key of a token."""
    try:
        version, revision, start = _fields(json.parse(_raw(token)))
    except DecodeError as error:
        raise _invalid(f": {error}") from None
    if version != VERSION:
        raise _invalid(f": server does not recognize this encoded version {version}")
    if revision == 0:
        raise _invalid(f": incorrect encoded start resourceVersion (version {VERSION})")
    if not start:
        raise _invalid(f": encoded start key empty (version {VERSION})")
    key = start if start.startswith("/") else "/" + start
    if posixpath.normpath(key) != key.rstrip("/") and posixpath.normpath(key) + "/" != key:
        raise _invalid(f": {start}")
    return revision, key[1:]


def _raw(token: str) -> bytes:
    """The text of a token: base64 for URLs, without padding, in which line breaks do not count."""
    plain = token.translate(_LINE_BREAKS)
    valid = _ALPHABET.match(plain)
    end = valid.end() if valid else 0
    if end == len(plain) and end % 4 != 1:
        return base64.urlsafe_b64decode(plain + "=" * (-end % 4))
    at = end if end < len(plain) else end - 1
    places = [index for index, char in enumerate(token) if char not in "\r\n"]
    raise DecodeError(f"illegal base64 data at input byte {len(token[: places[at]].encode())}")


def _fields(value: Any) -> tuple[str, int, str]:
    """Version, revision and start key of a token's text."""
    if value is None:
        value = {}
    if not isinstance(value, dict):
        raise DecodeError(
            f"json: cannot unmarshal {json_type(value)} into Go value of type storage.continueToken"
        )
    found: dict[str, Any] = {"v": "", "rv": 0, "start": ""}
    for key, given in value.items():
        name = key.lower()
        if name not in found or given is None:
            continue
        wanted = type(found[name])
        if type(given) is not wanted:
            word = f"number {given}" if wanted is int and isinstance(given, float) else json_type(given)
            go_type = "int64" if wanted is int else "string"
            where = f"Go struct field continueToken.{name} of type {go_type}"
            raise DecodeError(f"json: cannot unmarshal {word} into {where}")
        found[name] = given
    return found["v"], found["rv"], found["start"]


def _invalid(why: str) -> status.APIError:
    return status.bad_request(f"invalid continue token: continue key is not valid{why}")
