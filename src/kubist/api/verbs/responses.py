"""Responses of the verbs: the negotiated representation of an object or entry, compressed if it is large."""

from __future__ import annotations

from kubist.api.representation.representation import Representation
from kubist.api.verbs.representations import endpoint, representation
from kubist.api.verbs.resource_request import ResourceRequest
from kubist.api.verbs.storage_version import entry_in_request_version
from kubist.base.http import compression
from kubist.base.http.compression import GZIP_THRESHOLD
from kubist.base.http.messages import Response
from kubist.model.codec import negotiate
from kubist.model.meta.object import Object
from kubist.storage.cache.cache import Entry


def negotiate_representation(ctx: ResourceRequest, form: str) -> Representation:
    """Negotiate the representation of the response. `form` is object, list or none (without a Table)."""
    headers, query, resource = ctx.request.headers, ctx.query, ctx.resource
    accept = headers.get("accept", "")
    include = query.get("includeObject", "") if query else ""
    pretty = negotiate.wants_pretty(query, headers.get("user-agent", ""))
    subresource = ctx.info.subresource
    asked = (accept, form, subresource, pretty, include)
    known = resource.negotiated.get(asked)
    if known is None:
        media = negotiate.negotiate(accept, endpoint(resource, subresource, form), pretty=pretty)
        known = resource.negotiated[asked] = representation(resource, media, include)
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


async def respond_entry(ctx: ResourceRequest, code: int, entry: Entry, shown: Representation) -> Response:
    """Response with a stored entry."""
    if ctx.resource.custom is not None:
        entry = await entry_in_request_version(ctx, entry)
    body = shown.object(entry)
    if len(body) <= GZIP_THRESHOLD:
        return Response(code, [(b"Content-Type", shown.content_type.encode())], body)
    return await respond(ctx, code, body, shown.content_type)


async def respond_object(ctx: ResourceRequest, code: int, obj: Object, shown: Representation) -> Response:
    """Response with an object that is not stored."""
    return await respond(ctx, code, shown.value(obj), shown.content_type)
