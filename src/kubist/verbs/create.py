"""create: a new object, from a POST or from a PUT or apply of an absent one."""

from __future__ import annotations

from typing import Any

from kubist.codec import negotiate
from kubist.http.messages import Response
from kubist.meta import names, objectmeta, status
from kubist.meta.fields import FieldError
from kubist.meta.numerals import unsigned
from kubist.meta.uids import new_uid
from kubist.resources.strategy import Create, Strategy
from kubist.schema.catalog import schema_for
from kubist.storage.cache import Entry
from kubist.turns import Lengthy, away, elsewhere
from kubist.verbs import body, managed, options
from kubist.verbs.call import Call

Object = dict[str, Any]

SYSTEM_FIELDS = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")


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
    obj = to_storage(call, obj)
    await call.api.admission.admit(call.context, obj, None)
    entry = await insert(call, obj)
    if entry is None:
        return await call.value(201, from_storage(call, obj), shown)
    return await call.entry(201, entry, shown)


def _sent(call: Call) -> Object:
    """The object of the request's body, complete."""
    obj = body.read(call, body.expected(call.resource))
    call.resource.strategy.default(obj)
    metadata = obj["metadata"]
    wipe(metadata)
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
            wipe(metadata)
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
    """Read the options of the query. A content type that is not supported comes before a wrong option."""
    if not call.query:
        return
    negotiate.content_type(call.request.headers.get("content-type", ""))
    chosen = options.write_options("CreateOptions", call.query, call.request.query)
    context = call.context
    context.dry_run = chosen.dry_run
    context.field_manager = chosen.field_manager
    context.field_validation = chosen.field_validation


def converts(call: Call) -> bool:
    """Whether the request's version is not the stored one. (Custom objects are converted as they are opened.)"""
    return not call.resource.custom and call.resource.api_version != call.resource.storage_version


def to_storage(call: Call, obj: Object) -> Object:
    """An object of the request's version in the stored one, made out of it."""
    resource = call.resource
    return resource.strategy.convert(obj, resource.storage_version) if converts(call) else obj


def from_storage(call: Call, obj: Object) -> Object:
    resource = call.resource
    return resource.strategy.convert(obj, resource.api_version) if converts(call) else obj


def wipe(metadata: Object) -> None:
    for name in SYSTEM_FIELDS:
        if name in metadata:
            del metadata[name]


def match_namespace(call: Call, metadata: Object) -> None:
    """The object goes where the URL says; if it says something else itself, it is refused."""
    if not call.resource.namespaced:
        metadata.pop("namespace", None)
        return
    given = metadata.get("namespace", "")
    if given and given != call.info.namespace:
        raise status.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    metadata["namespace"] = call.info.namespace


def name_it(call: Call, metadata: Object) -> bool:
    """Make a name from generateName where there is none."""
    name, prefix = metadata.get("name", ""), metadata.get("generateName")
    if prefix and not name:
        name = metadata["name"] = call.resource.strategy.generate_name(prefix)
        if labels := metadata.get("labels"):
            # The reference goes on with a copy here: a Job no longer shares the map of its template.
            metadata["labels"] = dict(labels)
    call.context.name = name
    return bool(prefix)


def is_version(text: str) -> bool:
    """Whether an object with this resourceVersion is one that was stored."""
    number = unsigned(text)
    return isinstance(number, int) and number > 0


def stamp(call: Call, metadata: Object) -> None:
    """What the system gives a new object."""
    metadata["uid"] = new_uid()
    metadata["creationTimestamp"] = call.context.now


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
    generated = name_it(call, metadata)
    stamp(call, metadata)
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
        if not context.dry_run and is_version(metadata.pop("resourceVersion", "")):
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
