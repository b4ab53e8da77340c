"""create: POST of an object, of a subresource such as binding, or of a kind that is not stored such as TokenReview."""

from __future__ import annotations

from kubist.codec import negotiate
from kubist.http.messages import Response
from kubist.meta import objectmeta, status
from kubist.meta.object import Object
from kubist.offload import away, elsewhere
from kubist.resources.strategy import Create
from kubist.schema.catalog import schema_for
from kubist.verbs import body, managed_fields, options, write_path
from kubist.verbs.call import Call
from kubist.verbs.metadata import (
    drop_system_fields,
    match_namespace,
)


async def create(call: Call) -> Response:
    strategy = call.resource.strategy
    poster = strategy.virtual
    if call.info.subresource:
        found = strategy.subresources.get(call.info.subresource)
        poster = found if isinstance(found, Create) else None
        if poster is None:
            raise status.method_not_allowed()
    if poster is not None:
        return await _post(call, poster)
    shown = call.negotiate("object")
    _options(call)
    obj = await elsewhere(_sent, call) if call.long else _sent(call)
    return await write_path.respond(call, await write_path.create_object(call, obj), shown)


def _sent(call: Call) -> Object:
    """Object of the body with defaults, namespace and without system fields."""
    obj = body.read(call, body.expected(call.resource))
    call.resource.strategy.default(obj)
    metadata = obj["metadata"]
    drop_system_fields(metadata)
    match_namespace(call, metadata)
    warning = objectmeta.deduplicate_owner_references(metadata)
    if warning:
        call.context.warn(warning)
    call.context.name = metadata.get("name", "")
    return obj


async def _post(call: Call, poster: Create) -> Response:
    """POST of a subresource, or of a kind whose response is computed and not stored."""
    shown = call.negotiate("none")
    _options(call)
    schema = schema_for(poster.group, poster.version, poster.kind)
    wanted = body.Expected(poster.group, poster.version, poster.kind, schema, accepts=poster.accepts)

    def sent() -> Object:
        obj = body.read(call, wanted)
        poster.default(obj)
        metadata = obj["metadata"]
        if not call.info.subresource:
            drop_system_fields(metadata)
        match_namespace(call, metadata)
        if poster.managed:
            managed_fields.track_answer(call, obj, schema, wanted.api_version)
        return obj

    obj = await away(call.long, sent)
    await call.api.admission.admit(call.context, obj, None)
    await call.api.admission.validate(call.context, obj, None)
    answer = await poster.create(call.context, obj)
    return await call.value(201, answer, shown)


def _options(call: Call) -> None:
    """Read the options of the query. An unsupported content type is reported before an invalid option."""
    if not call.query:
        return
    negotiate.content_type(call.request.headers.get("content-type", ""))
    options.read_write_options(call, "CreateOptions")
