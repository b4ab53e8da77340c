"""connect: a sub-resource that is not an object but a way to something else, such as log, exec or proxy."""

from __future__ import annotations

from kubist.http.messages import Response
from kubist.kinds.strategy import Connect
from kubist.meta import status
from kubist.verbs.call import Call


def way_through(call: Call) -> Connect | None:
    """What the request connects to, if it asks for such a sub-resource."""
    if not call.info.subresource:
        return None
    found = call.resource.strategy.subresources.get(call.info.subresource)
    return found if isinstance(found, Connect) else None


async def connect(call: Call, way: Connect) -> Response:
    if call.request.method not in way.methods:
        raise status.method_not_allowed()
    if way.negotiated:
        call.negotiate("none")
    code, content_type, body = await way.connect(call.context)
    return Response(code, [(b"Content-Type", content_type.encode())] if content_type else [], body)
