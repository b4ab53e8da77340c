"""/openapi/v2 and /openapi/v3. Documents are generated on first request, in a thread.

The ETag of a document is the hash of the inputs of its generation, so the index needs no generated document.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Iterable
from email.utils import formatdate, parsedate_to_datetime
from functools import cache
from typing import Any
from weakref import WeakValueDictionary

import orjson

from kubist.api.discovery import descriptions, openapi_paths, openapi_types, openapi_v2, openapi_v3
from kubist.api.discovery.openapi_paths import Path
from kubist.api.resources.resource import Resource, Resources
from kubist.base.http.compression import compress
from kubist.base.http.messages import Headers, Request, Response
from kubist.base.version import __version__
from kubist.model.codec import negotiate
from kubist.model.meta.numerals import decimal
from kubist.model.meta.object import Object

JSON = "application/json"
V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
V3_PROTOBUF = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
V2_FORMS = {
    JSON: JSON,
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf": V2_PROTOBUF,
    V2_PROTOBUF: V2_PROTOBUF,
}
V3_FORMS = {
    JSON: JSON,
    "application/com.github.proto-openapi.spec.v3@v1.0+protobuf": V3_PROTOBUF,
    V3_PROTOBUF: V3_PROTOBUF,
}
"""Requestable media types, and the Content-Type of the response."""
YEAR = 365 * 86400


class Document:
    """One document: its ETag, and its encoded forms, built when first needed."""

    def __init__(self, seed: bytes) -> None:
        self.tag = hashlib.sha512(seed).hexdigest().upper()
        self.made = int(time.time())
        self.forms: dict[str, bytes] = {}


_documents: WeakValueDictionary[tuple[str, str], Document] = WeakValueDictionary()
"""Documents of the process, by name and ETag. Servers with the same inputs share one."""


def _shared(name: str, seed: bytes) -> Document:
    made = Document(seed)
    return _documents.setdefault((name, made.tag), made)


class OpenAPI:
    """OpenAPI documents of one server."""

    def __init__(self, resources: Resources, prefix: str = "") -> None:
        """`prefix`: path that links start with."""
        self.resources = resources
        self._root = f"{prefix}/openapi/v3/"
        self._generation = -1
        self._v2 = Document(b"")
        self._v3: dict[str, Document] = {}
        self._making = asyncio.Lock()

    async def answer(self, request: Request, path: str, query: dict[str, str]) -> Response | None:
        """Response for a path; None if the path is unknown."""
        self._refresh()
        if path == "/openapi/v2":
            return await self._serve_v2(request)
        if path == "/openapi/v3":
            return self._index(request)
        if path.startswith("/openapi/v3/"):
            return await self._serve_v3(request, path[len("/openapi/v3/") :], query)
        return None

    def _refresh(self) -> None:
        """Updates the list of documents after a change of resources. Unchanged documents keep their encoded forms."""
        if self._generation == self.resources.generation:
            return
        self._v3 = {name: _shared(name, seed) for name, seed in self._seeds().items()}
        everything = "".join(document.tag for document in self._v3.values())
        self._v2 = _shared(" ".join(self._v3), everything.encode())
        self._generation = self.resources.generation

    def _seeds(self) -> dict[str, bytes]:
        seeds = {name: _release(name) for name in openapi_paths.root_paths()}
        for group, version in self.resources.group_versions():
            name = f"apis/{group}/{version}" if group else f"api/{version}"
            custom = _custom(self.resources, group, version)
            if custom:
                seeds[name] = orjson.dumps([descriptions.version(), *map(_described, custom)])
                continue
            plurals = ",".join(self.resources.of(group, version) or ())
            seeds[name] = _release(f"{name} {plurals}")
            if group:
                seeds[f"apis/{group}"] = _release(f"apis/{group}")
        return dict(sorted(seeds.items()))

    def _index(self, request: Request) -> Response:
        paths = {
            name: {"serverRelativeURL": f"{self._root}{name}?hash={document.tag}"}
            for name, document in self._v3.items()
        }
        headers = [(b"Content-Type", b"text/plain; charset=utf-8")]
        return conditional(request, headers, orjson.dumps({"paths": paths}), "", int(time.time()))

    async def _serve_v3(self, request: Request, name: str, query: dict[str, str]) -> Response:
        document = self._v3.get(name)
        if document is None:
            return Response(404, [])
        vary = (b"Vary", b"Accept")
        form = _form(request, tuple(V3_FORMS))
        if form is None:
            return Response(406, [vary])
        kind = V3_FORMS[form]
        headers: Headers = [(b"Content-Type", kind.encode()), vary]
        query_hash = query.get("hash")
        if query_hash:
            if query_hash != document.tag:
                location = f"{self._root}{name}?hash={document.tag}".encode()
                tagged = (b"ETag", f'"{document.tag}"'.encode())
                return Response(301, [*headers, tagged, (b"Location", location)])
            expires = formatdate(time.time() + YEAR, usegmt=True).encode()
            headers += [(b"Cache-Control", b"public, immutable"), (b"Expires", expires)]
        body = await self._made(document, JSON, lambda: self._write_v3(name))
        if kind != JSON:
            body = await self._made(document, kind, lambda: _protobuf_v3(document.forms[JSON]))
        return conditional(request, headers, body, document.tag, document.made)

    def _write_v3(self, name: str) -> bytes:
        custom = self._custom_of(name)
        if not custom:
            return _built_in_v3(name, self.resources.built_in)
        types: dict[str, Object] = {}
        for resource in custom:
            types |= openapi_types.custom(resource)
        paths = [path for resource in custom for path in openapi_paths.resource_paths(resource)]

        def definition(type: str) -> Object:
            return types.get(type) or openapi_types.beside_custom(type)

        return orjson.dumps(openapi_v3.document(paths, definition, openapi_v3.CUSTOM_INFO))

    def _custom_of(self, name: str) -> list[Resource]:
        parts = name.split("/")
        return _custom(self.resources, parts[1], parts[2]) if len(parts) == 3 else []

    async def _serve_v2(self, request: Request) -> Response:
        vary = (b"Vary", b"Accept")
        form = _form(request, tuple(V2_FORMS))
        if form is None:
            return Response(406, [vary])
        document, kind = self._v2, V2_FORMS[form]
        body = await self._made(document, JSON, self._write_v2)
        if kind != JSON:
            body = await self._made(document, kind, lambda: _protobuf_v2(document.forms[JSON]))
        headers: Headers = [(b"Content-Type", kind.encode()), vary]
        if "gzip" in request.headers.get("accept-encoding", "") and "range" not in request.headers:
            plain = body
            body = await self._made(document, kind + "+gzip", lambda: compress(plain))
            headers.append((b"Content-Encoding", b"gzip"))
        return conditional(request, headers, body, document.tag, document.made)

    def _write_v2(self) -> bytes:
        paths = list(_built_in_paths(self.resources.built_in))
        types: dict[str, Object] = {}
        for resource in self.resources:
            if resource.custom:
                paths += openapi_paths.resource_paths(resource)
                types |= openapi_types.custom(resource, old=True)

        def definition(type: str) -> Object:
            return types.get(type) or openapi_types.old_built_in(type)

        return orjson.dumps(openapi_v2.document(paths, definition))

    async def _made(self, document: Document, form: str, make: Any) -> bytes:
        if form not in document.forms:
            async with self._making:
                if form not in document.forms:
                    document.forms[form] = await asyncio.to_thread(make)
        return document.forms[form]


def _custom(resources: Resources, group: str, version: str) -> list[Resource]:
    return [resource for resource in (resources.of(group, version) or {}).values() if resource.custom]


def _described(resource: Resource) -> list[Any]:
    """Inputs of the document of a custom resource, for its ETag."""
    assert resource.custom is not None
    spec = resource.custom.version.spec
    return [resource.resource, resource.kind, resource.list_kind, resource.namespaced, spec]


def _release(name: str) -> bytes:
    """Inputs of the document of a built-in group, for its ETag."""
    return f"{__version__} {descriptions.version()} {name}".encode()


@cache
def _built_in_v3(name: str, resources: tuple[Resource, ...]) -> bytes:
    """Document of a built-in group, shared by all servers of the process with the same resources. Callers pass only
    served names."""
    kind, _, rest = name.partition("/")
    roots = openapi_paths.root_paths()
    group, _, version = rest.rpartition("/") if kind == "apis" and "/" in rest else ("", "", rest)
    if name in roots:
        paths = [roots[name]]
    elif kind == "apis" and "/" not in rest:
        paths = [openapi_paths.group_path(rest)]
    else:
        served = [r for r in resources if (r.group, r.version) == (group, version)]
        paths = [openapi_paths.group_version_path(group, version)]
        paths += [path for resource in served for path in openapi_paths.resource_paths(resource)]

    def definition(type: str) -> Object:
        return openapi_types.built_in(type, group=group, version=version)

    return orjson.dumps(openapi_v3.document(paths, definition))


def _built_in_paths(resources: tuple[Resource, ...]) -> Iterable[Path]:
    yield from openapi_paths.root_paths().values()
    versions = dict.fromkeys((resource.group, resource.version) for resource in resources)
    for group in dict.fromkeys(group for group, _ in versions if group):
        yield openapi_paths.group_path(group)
    for group, version in versions:
        yield openapi_paths.group_version_path(group, version)
    for resource in resources:
        yield from openapi_paths.resource_paths(resource)


def _protobuf_v2(document: bytes) -> bytes:
    # Saves start-up time: loaded with the first request for protobuf.
    from kubist.api.discovery.gnostic import encode_v2

    return encode_v2(orjson.loads(document))


def _protobuf_v3(document: bytes) -> bytes:
    # Saves start-up time: loaded with the first request for protobuf.
    from kubist.api.discovery.gnostic import encode_v3

    return encode_v3(orjson.loads(document))


def _form(request: Request, offered: tuple[str, ...]) -> str | None:
    for clause in negotiate.parse_accept(request.headers.get("accept") or "*/*"):
        for form in offered:
            if clause.names(form):
                return form
    return None


def conditional(request: Request, headers: Headers, body: bytes, tag: str, modified: int) -> Response:
    """Response with ETag: 304 if the client's copy is current, 206 for a single byte range."""
    own = request.headers
    tagged: Headers = [(b"ETag", f'"{tag}"'.encode())] if tag else []
    if _is_current(own, tag, modified):
        kept = [pair for pair in headers if pair[0] not in (b"Content-Type", b"Content-Encoding")]
        return Response(304, [*kept, *tagged])
    headers = [
        *headers,
        *tagged,
        (b"Accept-Ranges", b"bytes"),
        (b"Last-Modified", formatdate(modified, usegmt=True).encode()),
    ]
    span = _range(own.get("range", ""), len(body))
    if span is None:
        return Response(200, headers, body)
    first, last = span
    headers.append((b"Content-Range", f"bytes {first}-{last}/{len(body)}".encode()))
    return Response(206, headers, body[first : last + 1])


def _is_current(headers: dict[str, str], tag: str, modified: int) -> bool:
    none_match = headers.get("if-none-match")
    if none_match is not None:
        tags = {part.strip().removeprefix("W/") for part in none_match.split(",")}
        return "*" in tags or bool(tag and f'"{tag}"' in tags)
    since = headers.get("if-modified-since")
    if since is None:
        return False
    try:
        return modified <= parsedate_to_datetime(since).timestamp()
    except ValueError:
        return False


def _range(header: str, size: int) -> tuple[int, int] | None:
    """First and last byte of a single range. None for any other header, which gets the full body."""
    unit, _, span = header.partition("=")
    start, dash, end = span.strip().partition("-")
    if unit != "bytes" or not dash or not (start + end).isdecimal():
        return None
    if not start:
        return max(size - decimal(end), 0), size - 1
    first, last = decimal(start), min(decimal(end), size - 1) if end else size - 1
    return (first, last) if first <= last else None
