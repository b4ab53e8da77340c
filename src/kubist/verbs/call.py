"""Context of a request for a resource on its way through a verb, from the negotiated media type to the response."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kubist.codec import negotiate
from kubist.codec.negotiate import MediaType
from kubist.codec.representation import Representation
from kubist.http import compression
from kubist.http.compression import GZIP_THRESHOLD
from kubist.http.messages import Request, Response
from kubist.meta import status
from kubist.request import RequestInfo
from kubist.resources.context import Context, User
from kubist.resources.resource import Resource
from kubist.storage.cache import Entry
from kubist.verbs.representations import endpoint, representation
from kubist.verbs.sent_object import PLAIN as PLAIN_BODY
from kubist.verbs.sent_object import SentObject
from kubist.verbs.services import Services

PLAIN = MediaType(negotiate.JSON)


@dataclass(slots=True)
class Call:
    """A request for a served resource."""

    api: Services
    request: Request
    info: RequestInfo
    resource: Resource
    user: User
    query: dict[str, str]
    warnings: list[str]
    audit_annotations: dict[str, str]
    media: MediaType = PLAIN
    sent: SentObject = PLAIN_BODY
    """Empty lists and maps of the body, which the stored object does not have."""
    long: bool = False
    """Whether the body or the stored object is long, so that work on it leaves the event loop."""
    _context: Context | None = None

    @property
    def context(self) -> Context:
        """Context for kinds and admission, made on first use."""
        context = self._context
        if context is None:
            context = self._context = self.api.context(self)
        return context

    @property
    def collection_prefix(self) -> str:
        """Key prefix of the request's collection: one namespace or all of them."""
        resource, namespace = self.resource, self.info.namespace
        return f"{resource.prefix}{namespace}/" if namespace and resource.namespaced else resource.prefix

    def negotiate(self, form: str, *, stream: bool = False) -> Representation:
        """Negotiate the representation of the response. `form` is object, list or none (without a Table)."""
        headers, query, resource = self.request.headers, self.query, self.resource
        accept = headers.get("accept", "")
        include = query.get("includeObject", "") if query else ""
        if stream:
            self.media = negotiate.negotiate_stream(accept, endpoint(resource, self.info.subresource, form))
            return representation(resource, self.media, include).for_watch()
        pretty = negotiate.wants_pretty(query, headers.get("user-agent", ""))
        asked = (accept, form, self.info.subresource, pretty, include)
        known = resource.negotiated.get(asked)
        if known is None:
            media = negotiate.negotiate(
                accept, endpoint(resource, self.info.subresource, form), pretty=pretty
            )
            known = media, representation(resource, media, include)
            resource.negotiated[asked] = known
        self.media = known[0]
        return known[1]

    def not_found(self, name: str | None = None) -> status.APIError:
        return status.not_found(
            self.resource.group, self.resource.resource, self.info.name if name is None else name
        )

    def conflict(self, name: str, why: str) -> status.APIError:
        return status.conflict(self.resource.group, self.resource.resource, name, why)

    async def respond(self, code: int, body: bytes | list[bytes], content_type: str) -> Response:
        """Response with its headers, compressed with gzip if it is large and the client accepts it."""
        headers = [(b"Content-Type", content_type.encode())]
        size = len(body) if isinstance(body, bytes) else sum(map(len, body))
        if size > GZIP_THRESHOLD and compression.accepts_gzip(
            self.request.headers.get("accept-encoding", "")
        ):
            body = await compression.compressed(body if isinstance(body, bytes) else b"".join(body))
            headers += compression.HEADERS
        return Response(code, headers, body)

    async def decode_entry(self, entry: Entry) -> dict[str, Any]:
        """Copy of a stored object in the version that the verbs handle: the request's for custom resources, else the
        stored one."""
        return (await self.versioned(entry)).object()

    async def to_stored_version(self, obj: dict[str, Any]) -> dict[str, Any]:
        """Object converted to the stored version of its CRD."""
        conversion = self.resource.strategy.conversion
        if conversion is None or obj["apiVersion"] == self.resource.storage_version:
            return obj
        converted: dict[str, Any] = await conversion.to_stored_version(obj, self.resource.storage_version)
        return converted

    async def versioned(self, entry: Entry) -> Entry:
        """Stored entry converted to the request's version of its CRD."""
        conversion = self.resource.strategy.conversion
        if conversion is None or entry.kind.api_version == self.resource.api_version:
            return entry
        converted: Entry = await conversion.entry(entry, self.resource.api_version)
        return converted

    async def entry(self, code: int, entry: Entry, shown: Representation) -> Response:
        """Response with a stored entry."""
        if self.resource.strategy.conversion is not None:
            entry = await self.versioned(entry)
        body = shown.object(entry)
        if len(body) <= GZIP_THRESHOLD:
            return Response(code, [(b"Content-Type", shown.content_type.encode())], body)
        return await self.respond(code, body, shown.content_type)

    async def value(self, code: int, obj: dict[str, Any], shown: Representation) -> Response:
        """Response with an object that is not stored."""
        return await self.respond(code, shown.value(obj), shown.content_type)
