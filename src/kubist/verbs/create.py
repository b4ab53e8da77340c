"""create: a new object, from a POST or from a PUT or apply of an absent one."""

from __future__ import annotations

from typing import Any

from kubist.codec import negotiate
from kubist.http.messages import Response
from kubist.meta import names, objectmeta, status
from kubist.meta.fields import FieldError
from kubist.offload import Lengthy, away, elsewhere
from kubist.resources.strategy import Create, Strategy
from kubist.schema.catalog import schema_for
from kubist.storage.cache import Entry
from kubist.verbs import body, managed, options
from kubist.verbs.call import Call
from kubist.verbs.metadata import (
    drop_system_fields,
    is_stored_version,
    match_namespace,
    set_name,
    set_system_fields,
)
from kubist.verbs.storage_version import to_request_version, to_storage_version

Object = dict[str, Any]


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
    if (pending := managed.tracked(call, obj, None, strategy.reset_fields)) is not None:
        await pending
    obj = to_storage_version(call, obj)
    await call.api.admission.admit(call.context, obj, None)
    entry = await insert(call, obj)
    if entry is None:
        return await call.value(201, to_request_version(call, obj), shown)
    return await call.entry(201, entry, shown)


def _sent(call: Call) -> Object:
    """The object of the request's body, complete."""
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
    """A sub-resource or a kind that is answered rather than stored."""
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
            managed.track_answer(call, obj, schema, wanted.api_version)
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


def prepare(call: Call, strategy: Strategy, obj: Object) -> None:
    if strategy.generation:
        obj["metadata"]["generation"] = 1
    strategy.prepare_for_create(call.context, obj)


def check(call: Call, strategy: Strategy, obj: Object) -> None:
    """Validate a new object: 422 with all causes."""
    errors = _errors(call, strategy, obj)
    if errors:
        if call.sent_empty is not None:
            errors = call.sent_empty.reworded(errors, obj, lambda sent: _errors(call, strategy, sent))
        name = obj["metadata"].get("name", "")
        raise status.invalid(call.resource.stored_group, call.resource.kind, name, errors)
    context = call.context
    for warning in strategy.warnings_on_create(context, obj):
        context.warn(warning)


def _errors(call: Call, strategy: Strategy, obj: Object) -> list[FieldError]:
    metadata, context = obj["metadata"], call.context
    namespaced = call.resource.namespaced
    if strategy.lenient_metadata:
        return strategy.validate_create(context, obj) or objectmeta.validate_create(
            metadata, namespaced=namespaced, validate_name=names.path_segment, qualified_finalizers=False
        )
    errors = objectmeta.validate_create(
        metadata,
        namespaced=namespaced,
        validate_name=strategy.name_rule(obj),
        qualified_finalizers=strategy.qualified_finalizers,
    )
    return errors + strategy.validate_create(context, obj)


def settle(call: Call, obj: Object) -> None:
    """The object as it will be read: without what was sent empty, for which there may be defaults."""
    sent_empty = call.sent_empty
    if sent_empty is not None and sent_empty.paths:
        sent_empty.take(obj)
        call.resource.strategy.default(obj)


async def insert(call: Call, obj: Object) -> Entry | None:
    """Complete, check and store a new object; None in a dry run, `obj` then being the answer. Made by way of a
    sub-resource, it gets nothing from outside: a service no addresses."""
    resource, context = call.resource, call.context
    strategy = resource.strategy
    metadata = obj["metadata"]
    generated = set_name(call, metadata)
    set_system_fields(call, metadata)
    pending = strategy.before_create(context, obj) if not call.info.subresource else None
    undo = await pending if pending is not None else None
    try:
        prepare(call, strategy, obj)
        try:
            await away(call.long, check, call, strategy, obj)
        except Lengthy:
            await elsewhere(check, call, strategy, obj)
        await call.api.admission.validate(context, obj, None)
        settle(call, obj)
        if not context.dry_run and is_stored_version(metadata.pop("resourceVersion", "")):
            raise status.plain_error("resourceVersion should not be set on objects to be created")
        registry, name = call.api.registry, metadata["name"]
        existing = registry.collection(resource).get(resource.key(call.info.namespace, name))
        if existing is not None:
            # The cache may not have heard yet that it is gone.
            existing = await registry.read(resource, call.info.namespace, name)
        if existing is not None:
            raise _exists(call, existing, generated)
        if context.dry_run:
            if undo is not None:
                await undo()
            return None
        try:
            stored = obj if strategy.conversion is None else await call.closed(obj)
            return await registry.insert(resource, call.info.namespace, stored)
        except status.APIError as error:
            if error.reason == "AlreadyExists":
                raise _exists(call, None, generated, name) from None
            raise
    except BaseException:
        if undo is not None:
            await undo()
        raise


def _exists(call: Call, entry: Entry | None, generated: bool, name: str = "") -> status.APIError:
    resource = call.resource
    error = status.already_exists(resource.group, resource.resource, entry.name if entry else name)
    if generated:
        if error.details is not None:
            error.details["retryAfterSeconds"] = 1
        error.headers = [("Retry-After", "1")]
        error.message += ", the server was not able to generate a unique name for the object"
    elif entry is not None and "deletionTimestamp" in entry.object()["metadata"]:
        error.message = f"object is being deleted: {error.message}"
    return error
