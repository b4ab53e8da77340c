"""get: one object, always its newest state."""

from __future__ import annotations

from kubist.http.messages import Response
from kubist.meta import status
from kubist.verbs import scale, versions
from kubist.verbs.call import Call


async def get(call: Call) -> Response:
    resource, info = call.resource, call.info
    if info.subresource == "scale":
        return await scale.get(call)
    shown = call.negotiate("object")
    virtual = resource.strategy.virtual_objects()
    if virtual is not None:
        for obj in virtual:
            if obj["metadata"]["name"] == info.name:
                return await call.value(200, obj, shown)
        raise status.not_found(resource.group, resource.singular, info.name)
    asked = call.query.get("resourceVersion")
    if asked:
        await versions.reach(call, versions.parse(call, asked))
    entry = await call.api.registry.read(resource, info.namespace, info.name)
    if entry is None:
        raise call.not_found()
    return await call.entry(200, entry, shown)
