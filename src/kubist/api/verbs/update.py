"""update: PUT of an object or of a subresource."""

from __future__ import annotations

from kubist.api.resources.strategy import Scale
from kubist.api.verbs import options, scale, write_path
from kubist.api.verbs.bodies import body, schemes
from kubist.api.verbs.metadata import check_name, match_namespace
from kubist.api.verbs.resource_request import ResourceRequest
from kubist.api.verbs.responses import negotiate_representation
from kubist.base.http.messages import Response
from kubist.base.jsontext import json
from kubist.base.jsontext.errors import DecodeError
from kubist.base.offload import away
from kubist.model.codec import yaml
from kubist.model.meta import objectmeta, status
from kubist.model.meta.object import Object


async def update(ctx: ResourceRequest) -> Response:
    path = write_path.update_target(ctx)
    if isinstance(path, Scale):
        return await _update_scale(ctx, path)
    representation = negotiate_representation(ctx, "object")
    options.read_write_options(ctx, "UpdateOptions")
    obj, cleared = await away(ctx.long, _read, ctx)
    metadata = obj["metadata"]
    unused: Object | None = obj

    async def replace(old: Object | None, fresh: write_path.Fresh) -> Object:
        nonlocal unused
        # The following steps may change the object, so another attempt decodes the body again.
        new, unused = unused if unused is not None else await away(ctx.long, _sent, ctx), None
        live = await write_path.in_request_version(ctx, old, fresh)
        return await write_path.finish_transform(ctx, path, new, old, live, cleared=cleared)

    outcome = await write_path.update_object(
        ctx,
        path,
        replace,
        create_absent=ctx.resource.strategy.create_on_update,
        precondition_uid=metadata.get("uid"),
    )
    return await write_path.respond(ctx, outcome, representation)


async def _update_scale(ctx: ResourceRequest, path: Scale) -> Response:
    representation = negotiate_representation(ctx, "object")
    options.read_write_options(ctx, "UpdateOptions")
    try:
        new = body.read(ctx, scale.expected_scale())
    except status.APIError as error:
        if not ctx.resource.custom or error.code != 400:
            raise
        # The scheme of custom resources has only options.
        why = f'no kind is registered for the type v1.Scale in scheme "{schemes.CUSTOM}"'
        raise status.bad_request(why) from None
    match_namespace(ctx, new["metadata"])
    check_name(ctx, new["metadata"])

    async def replaced(_old: Object) -> Object:
        return new

    return await scale.write(ctx, path, replaced, representation, new["metadata"].get("uid"))


def _read(ctx: ResourceRequest) -> tuple[Object, bool]:
    """Object of the body, and whether it clears managedFields."""
    obj = _sent(ctx)
    return obj, clears_managers(ctx, obj["metadata"])


def _sent(ctx: ResourceRequest) -> Object:
    """Object of the body with defaults. It must have the name and namespace of the URL."""
    obj = body.read(ctx)
    ctx.resource.strategy.default(obj)
    metadata = obj["metadata"]
    match_namespace(ctx, metadata)
    check_name(ctx, metadata)
    warning = objectmeta.deduplicate_owner_references(metadata)
    if warning:
        ctx.warn(warning)
    return obj


def clears_managers(ctx: ResourceRequest, metadata: Object) -> bool:
    """Whether the body has an empty list of managedFields, which decoding drops like any empty list."""
    if "managedFields" in metadata or b'"managedFields"' not in ctx.request.body:
        return False
    is_yaml = "yaml" in ctx.request.headers.get("content-type", "")
    try:
        sent = yaml.parse(ctx.request.body).value if is_yaml else json.parse(ctx.request.body)
    except DecodeError:  # protobuf that happens to contain the word
        return False
    sent_metadata = sent.get("metadata") if isinstance(sent, dict) else None
    return isinstance(sent_metadata, dict) and sent_metadata.get("managedFields") == []
