"""create: POST of an object, of a subresource such as binding, or of a kind that is not stored such as TokenReview."""

from __future__ import annotations

from kubist.api.resources.strategy import Create
from kubist.api.verbs import managed_fields, options, write_path
from kubist.api.verbs.bodies import body
from kubist.api.verbs.metadata import drop_system_fields, match_namespace
from kubist.api.verbs.resource_request import ResourceRequest
from kubist.api.verbs.responses import negotiate_representation, respond_object
from kubist.base.http.messages import Response
from kubist.base.offload import away, elsewhere
from kubist.model.codec import negotiate
from kubist.model.meta import objectmeta, status
from kubist.model.meta.object import Object
from kubist.model.schema.catalog import schema_for


async def create(ctx: ResourceRequest) -> Response:
    strategy = ctx.resource.strategy
    poster = strategy.virtual
    if ctx.info.subresource:
        subresource = strategy.subresources.get(ctx.info.subresource)
        poster = subresource if isinstance(subresource, Create) else None
        if poster is None:
            raise status.method_not_allowed()
    if poster is not None:
        return await _post(ctx, poster)
    representation = negotiate_representation(ctx, "object")
    _options(ctx)
    obj = await elsewhere(_sent, ctx) if ctx.long else _sent(ctx)
    return await write_path.respond(ctx, await write_path.create_object(ctx, obj), representation)


def _sent(ctx: ResourceRequest) -> Object:
    """Object in the body, with defaults and namespace, without system fields."""
    obj = body.read(ctx)
    ctx.resource.strategy.default(obj)
    metadata = obj["metadata"]
    drop_system_fields(metadata)
    match_namespace(ctx, metadata)
    warning = objectmeta.deduplicate_owner_references(metadata)
    if warning:
        ctx.warn(warning)
    ctx.name = metadata.get("name", "")
    return obj


async def _post(ctx: ResourceRequest, poster: Create) -> Response:
    """POST of a subresource, or of a kind whose response is computed and not stored."""
    representation = negotiate_representation(ctx, "none")
    _options(ctx)
    schema = schema_for(poster.group, poster.version, poster.kind)
    target = body.Expected(poster.group, poster.version, poster.kind, schema, accepts=poster.accepts)

    def sent() -> Object:
        obj = body.read(ctx, target)
        poster.default(obj)
        metadata = obj["metadata"]
        if not ctx.info.subresource:
            drop_system_fields(metadata)
        match_namespace(ctx, metadata)
        if poster.managed:
            managed_fields.track_answer(ctx, obj, schema, target.api_version)
        return obj

    obj = await away(ctx.long, sent)
    await ctx.api.admission.admit(ctx, obj, None)
    await ctx.api.admission.validate(ctx, obj, None)
    answer = await poster.create(ctx, obj)
    return await respond_object(ctx, 201, answer, representation)


def _options(ctx: ResourceRequest) -> None:
    """Read the options of the query. An unsupported content type is reported before an invalid option."""
    if not ctx.query:
        return
    negotiate.content_type(ctx.request.headers.get("content-type", ""))
    options.read_write_options(ctx, "CreateOptions")
