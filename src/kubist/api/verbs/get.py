"""get: one object, always its newest state."""

from __future__ import annotations

from kubist.api.verbs import resource_versions, scale
from kubist.api.verbs.resource_request import ResourceRequest
from kubist.api.verbs.responses import negotiate_representation, respond_entry, respond_object
from kubist.base.http.messages import Response
from kubist.model.meta import status


async def get(ctx: ResourceRequest) -> Response:
    resource, info = ctx.resource, ctx.info
    if info.subresource == "scale":
        return await scale.get(ctx)
    representation = negotiate_representation(ctx, "object")
    virtual = resource.strategy.virtual_objects(info.namespace)
    if virtual is not None:
        for obj in virtual:
            if obj["metadata"]["name"] == info.name:
                return await respond_object(ctx, 200, obj, representation)
        # metrics-server has no singular names, and shows namespaces.
        name = f"{info.namespace}/{info.name}" if info.namespace else info.name
        raise status.not_found(resource.group, resource.singular or resource.kind.lower(), name)
    version = ctx.query.get("resourceVersion")
    if version:
        await resource_versions.reach(ctx, resource_versions.parse(ctx, version))
    entry = await ctx.api.registry.read(resource, info.namespace, info.name)
    if entry is None:
        raise ctx.not_found()
    return await respond_entry(ctx, 200, entry, representation)
