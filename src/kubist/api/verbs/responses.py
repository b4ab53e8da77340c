"""Responses of the verbs: the negotiated representation of an object or entry, compressed if it is large."""

from __future__ import annotations

from kubist.api.representation.representation import Json, Representation
from kubist.api.resources.resource import Resource
from kubist.api.verbs.resource_request import ResourceRequest
from kubist.api.verbs.storage_version import entry_in_request_version
from kubist.base.http import compression
from kubist.base.http.compression import GZIP_THRESHOLD
from kubist.base.http.messages import Response
from kubist.model.codec import negotiate
from kubist.model.codec.negotiate import Endpoint, MediaType
from kubist.model.meta.object import Object
from kubist.storage.cache.cache import Entry


def negotiate_representation(ctx: ResourceRequest, form: str) -> Representation:
    """Negotiate the representation of the response. `form` is object, list or none (without a Table)."""
    headers, query, resource = ctx.request.headers, ctx.query, ctx.resource
    accept = headers.get("accept", "")
    include = query.get("includeObject", "") if query else ""
    pretty = negotiate.wants_pretty(query, headers.get("user-agent", ""))
    subresource = ctx.info.subresource
    key = (accept, form, subresource, pretty, include)
    known = resource.negotiated.get(key)
    if known is None:
        media = negotiate.negotiate(accept, endpoint(resource, subresource, form), pretty=pretty)
        known = resource.negotiated[key] = representation(resource, media, include)
    return known


def negotiate_stream(ctx: ResourceRequest) -> Representation:
    """Negotiate the representation of a watch."""
    resource = ctx.resource
    offered = endpoint(resource, ctx.info.subresource, "list")
    media = negotiate.negotiate_stream(ctx.request.headers.get("accept", ""), offered)
    return representation(resource, media, ctx.query.get("includeObject", "")).for_watch()


async def respond(ctx: ResourceRequest, code: int, body: bytes | list[bytes], content_type: str) -> Response:
    """Response with its headers, compressed with gzip if it is large and the client accepts it."""
    headers = [(b"Content-Type", content_type.encode())]
    size = len(body) if isinstance(body, bytes) else sum(map(len, body))
    if size > GZIP_THRESHOLD and compression.accepts_gzip(ctx.request.headers.get("accept-encoding", "")):
        body = await compression.compressed(body if isinstance(body, bytes) else b"".join(body))
        headers += compression.HEADERS
    return Response(code, headers, body)


async def respond_entry(ctx: ResourceRequest, code: int, entry: Entry, encoder: Representation) -> Response:
    """Response with a stored entry."""
    if ctx.resource.custom is not None:
        entry = await entry_in_request_version(ctx, entry)
    body = encoder.object(entry)
    if len(body) <= GZIP_THRESHOLD:
        return Response(code, [(b"Content-Type", encoder.content_type.encode())], body)
    return await respond(ctx, code, body, encoder.content_type)


async def respond_object(ctx: ResourceRequest, code: int, obj: Object, encoder: Representation) -> Response:
    """Response with an object that is not stored."""
    return await respond(ctx, code, await encoder.whole_value(obj), encoder.content_type)


_INCLUDED = ("", "Metadata", "Object", "None")
_BUILT_IN = Endpoint(transforms=True, table=True, literal=True)
_COLLECTION = Endpoint(transforms=True, table=True, literal=True, watched=True)
_WITHOUT_TABLE = Endpoint(transforms=True, literal=True)
_CUSTOM = Endpoint(plain=(negotiate.JSON, negotiate.YAML), transforms=True, table=True)


_PLAIN_STATUS = ("CustomResourceDefinition", "APIService", "ResourceClaim")
"""Kinds whose status cannot be shown as a table."""


def endpoint(resource: Resource, subresource: str, form: str) -> Endpoint:
    """Media types of an endpoint. `form` is "list" for lists and watches, "none" for responses that have no Table."""
    if resource.custom:
        return _CUSTOM
    if form == "none" or (subresource and not _has_table(resource, subresource)):
        return _WITHOUT_TABLE
    return _COLLECTION if form == "list" else _BUILT_IN


def _has_table(resource: Resource, subresource: str) -> bool:
    return subresource == "scale" or (subresource == "status" and resource.kind not in _PLAIN_STATUS)


def representation(resource: Resource, media: MediaType, include: str = "") -> Representation:
    """Representation of a resource for a media type, made once per resource. `include` is the unchecked includeObject
    of tables."""
    key = (media, include if media.convert_to == "Table" else "")
    result = resource.representations.get(key)
    if result is None:
        result = _make(resource, media, include)
        if include in _INCLUDED:
            resource.representations[key] = result
    assert isinstance(result, Representation)
    return result


def _make(resource: Resource, media: MediaType, include: str) -> Representation:
    if media.serializer == negotiate.PROTOBUF:
        return _messages(resource, media)
    inner = _json(resource, media, include)
    if media.serializer == negotiate.YAML:
        # Saves start-up time: most clients ask for JSON.
        from kubist.api.representation.yaml import Yaml

        return Yaml(inner)
    if media.pretty:
        # Saves start-up time: most clients ask for compact JSON.
        from kubist.api.representation.yaml import Indented

        return Indented(inner)
    return inner


def _json(resource: Resource, media: MediaType, include: str) -> Representation:
    if media.convert_to == "Table":
        # Saves start-up time: controllers ask for no tables.
        from kubist.api.tables.table import Table

        return Table(resource, media.version, include)
    if media.convert_to:
        # Saves start-up time: loaded with the first request for metadata only.
        from kubist.api.representation.partial import partial

        return partial(resource, media.convert_to, media.version)
    return Json(resource)


def _messages(resource: Resource, media: MediaType) -> Representation:
    if media.convert_to:
        # Saves start-up time: loaded with the first request for metadata only.
        from kubist.api.representation.partial import KIND, PartialProtobuf

        return PartialProtobuf(resource, media.version, lists=media.convert_to != KIND)
    # Saves start-up time: loaded with the first request for protobuf.
    from kubist.api.representation.protobuf import Protobuf

    return Protobuf(resource)
