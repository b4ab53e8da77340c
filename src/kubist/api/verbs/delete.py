"""delete: graceful while a grace period or a finalizer holds the object, at once otherwise."""

from __future__ import annotations

from kubist.api.verbs import deleteoptions
from kubist.api.verbs.deletion import delete_object
from kubist.api.verbs.options import delete_options
from kubist.api.verbs.resource_request import ResourceRequest
from kubist.api.verbs.responses import negotiate_representation, respond_entry, respond_object
from kubist.api.verbs.storage_version import to_request_version
from kubist.base.http.messages import Response
from kubist.model.meta import status
from kubist.model.meta.object import Object


async def delete(ctx: ResourceRequest) -> Response:
    if ctx.info.subresource:
        raise status.method_not_allowed()
    shown = negotiate_representation(ctx, "object")
    options = delete_options(deleteoptions.read(ctx), ctx.query)
    ctx.dry_run = options.dry_run
    ctx.options = options.given()
    ctx.resource.strategy.before_delete(ctx, ctx.info.name, options.propagation)
    registry, resource = ctx.api.registry, ctx.resource
    entry = await registry.read(resource, ctx.info.namespace, ctx.info.name)
    if entry is None:
        raise ctx.not_found()
    gone, held = await delete_object(ctx, entry, options)
    if held is not None:
        code = 202 if options.orphan_dependents is False else 200
        return await respond_entry(ctx, code, held, shown)
    if resource.strategy.returns_deleted:
        return await respond_object(ctx, 200, to_request_version(ctx, gone), shown)
    return await respond_object(ctx, 200, deleted_status(ctx, gone), shown)


def deleted_status(ctx: ResourceRequest, obj: Object) -> status.Status:
    resource, metadata = ctx.resource, obj["metadata"]
    details = {"name": metadata["name"]}
    if resource.group:
        details["group"] = resource.group
    details["kind"] = resource.resource
    details["uid"] = metadata.get("uid", "")
    return status.success(0, details)
