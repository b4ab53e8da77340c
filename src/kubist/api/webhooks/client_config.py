"""Validation of a webhook's clientConfig: URL or service. Used by admission and by CRD conversion."""

from __future__ import annotations

import re
from typing import NamedTuple

from kubist.api.resources.strategy import Errors
from kubist.base.jsontext.quoting import quoted
from kubist.model.meta import fields, names
from kubist.model.meta.object import Object

_FORM = "; desired format: https://host[/path]"
_SCHEME = re.compile("([A-Za-z][A-Za-z0-9+.-]*):")
_bad_escape = re.compile("%(?![0-9A-Fa-f]{2})").search
_is_host = re.compile(
    r"[A-Za-z0-9!$&'()*+,;=:_.~<>\"\x80-\U0010ffff-]*|\[[0-9A-Fa-f:.%A-Za-z_~-]+\]"
).fullmatch


class _Url(NamedTuple):
    scheme: str
    user: str | None
    host: str
    query: str
    fragment: str


def _parse(url: str) -> _Url:
    """Parts of a URL. Raises `ValueError` with Go's message if the URL is invalid."""
    if any(char < " " or char == "\x7f" for char in url):
        raise ValueError("net/url: invalid control character in URL")
    rest, _, fragment = url.partition("#")
    if rest.startswith(":"):
        raise ValueError("missing protocol scheme")
    scheme = ""
    if match := _SCHEME.match(rest):
        scheme, rest = match[1].lower(), rest[match.end() :]
    rest, _, query = rest.partition("?")
    user, host = None, ""
    if rest.startswith("//"):
        authority, slash, rest = rest[2:].partition("/")
        rest = slash + rest
        info, at, address = authority.rpartition("@")
        user = info if at else None
        host = address
        name, colon, port = address.rpartition(":")
        if colon and "]" not in port and not port.isdigit() and port:
            raise ValueError(f'invalid port "{colon}{port}" after host')
        if not _is_host(name if colon and "]" not in port else address):
            raise ValueError(f"invalid character in host name {quoted(address)}")
    elif not scheme and ":" in rest.split("/")[0]:
        raise ValueError("first path segment in URL cannot contain colon")
    for part in (rest, fragment, user or ""):
        if wrong := _bad_escape(part):
            raise ValueError(f"invalid URL escape {quoted(part[wrong.start() : wrong.start() + 3])}")
    return _Url(scheme, user, host, query, fragment)


def validate_url(url: str, path: str) -> Errors:
    """Validates an https URL with a host and an optional path, without user, query and fragment."""
    try:
        parts = _parse(url)
    except ValueError as error:
        why = f"url must be a valid URL: parse {quoted(url)}: {error}{_FORM}"
        return [fields.required(path, why)]
    errors = []
    if parts.scheme != "https":
        why = f"'https' is the only allowed URL scheme{_FORM}"
        errors.append(fields.invalid(path, parts.scheme, why))
    if not parts.host:
        errors.append(fields.invalid(path, parts.host, f"host must be specified{_FORM}"))
    if parts.user is not None:
        errors.append(fields.invalid(path, parts.user, "user information is not permitted in the URL"))
    if parts.fragment:
        errors.append(fields.invalid(path, parts.fragment, "fragments are not permitted in the URL"))
    if parts.query:
        errors.append(fields.invalid(path, parts.query, "query parameters are not permitted in the URL"))
    return errors


def validate_service(service: Object, path: str) -> Errors:
    errors = [fields.required(f"{path}.{name}") for name in ("name", "namespace") if not service.get(name)]
    port = service.get("port", 0)
    errors += [
        fields.invalid(f"{path}.port", port, f"port is not valid: {message}")
        for message in names.port_number(port)
    ]
    return errors + _validate_path(service.get("path") or "", f"{path}.path")


def _validate_path(url_path: str, path: str) -> Errors:
    if url_path in ("", "/"):
        return []
    if url_path == "//":
        return [fields.invalid(path, url_path, "segment[0] may not be empty")]
    errors = [] if url_path.startswith("/") else [fields.invalid(path, url_path, "must start with a '/'")]
    for index, segment in enumerate(url_path[1:].removesuffix("/").split("/")):
        if not segment:
            errors.append(fields.invalid(path, url_path, f"segment[{index}] may not be empty"))
            continue
        errors += [
            fields.invalid(path, url_path, f"segment[{index}]: {message}")
            for message in names.dns_subdomain(segment)
        ]
    return errors
