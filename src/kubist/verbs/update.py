"""update: PUT of a whole object or of a sub-resource."""

from __future__ import annotations

from typing import Any

from kubist.codec import yaml
from kubist.http.messages import Response
from kubist.jsontext import json
from kubist.jsontext.errors import DecodeError
from kubist.meta import objectmeta, status
from kubist.resources.strategy import Scale, Update
from kubist.turns import away
from kubist.verbs import body, create, guarded, managed, options, scale, schemes
from kubist.verbs.call import Call

Object = dict[str, Any]


def way_in(call: Call) -> Update | Scale:
    """Through what the request writes: the object itself or one of its sub-resources."""
    strategy = call.resource.strategy
    if not call.info.subresource:
        return strategy
    found = strategy.subresources.get(call.info.subresource)
    if isinstance(found, (Update, Scale)):
        return found
    raise status.method_not_allowed()


async def update(call: Call) -> Response:
    path = way_in(call)
    if isinstance(path, Scale):
        return await _update_scale(call, path)
    shown = call.negotiate("object")
    _options(call)
    obj, cleared = await away(call.long, _read, call)
    metadata = obj["metadata"]
    unused: Object | None = obj

    async def replace(old: Object | None, fresh: guarded.Fresh) -> Object:
        nonlocal unused
        # Whoever gets the object may change it: another try reads the body again.
        new, unused = unused if unused is not None else await away(call.long, _sent, call), None
        live = await guarded.seen(call, old, fresh)
        if (pending := managed.tracked(call, new, live, path.reset_fields, cleared=cleared)) is not None:
            await pending
        new = create.to_storage(call, new)
        await call.api.admission.admit(call.context, new, old)
        return new

    outcome = await guarded.update(
        call,
        path,
        replace,
        create_absent=call.resource.strategy.create_on_update,
        precondition_uid=metadata.get("uid"),
    )
    return await answer(call, outcome, shown)


async def _update_scale(call: Call, path: Scale) -> Response:
    shown = call.negotiate("object")
    _options(call)
    try:
        new = body.read(call, scale.expected_scale())
    except status.APIError as error:
        if not call.resource.custom or error.code != 400:
            raise
        # The scheme of custom resources holds options alone.
        why = f'no kind is registered for the type v1.Scale in scheme "{schemes.CUSTOM}"'
        raise status.bad_request(why) from None
    create.match_namespace(call, new["metadata"])
    check_name(call, new["metadata"])

    async def replaced(_old: Object) -> Object:
        return new

    return await scale.write(call, path, replaced, shown, new["metadata"].get("uid"))


def _read(call: Call) -> tuple[Object, bool]:
    """The object of the request's body, and whether it clears managedFields."""
    obj = _sent(call)
    return obj, clears_managers(call, obj["metadata"])


def _sent(call: Call) -> Object:
    """The object of the request's body, complete and about the object that the URL names."""
    obj = body.read(call, body.expected(call.resource))
    call.resource.strategy.default(obj)
    metadata = obj["metadata"]
    create.match_namespace(call, metadata)
    check_name(call, metadata)
    warning = objectmeta.deduplicate_owner_references(metadata)
    if warning:
        call.context.warn(warning)
    return obj


async def answer(call: Call, outcome: guarded.Outcome, shown: Any) -> Response:
    code = 201 if outcome.created else 200
    if outcome.entry is not None:
        return await call.entry(code, outcome.entry, shown)
    return await call.value(code, create.from_storage(call, outcome.object), shown)


def clears_managers(call: Call, metadata: Object) -> bool:
    """Whether the body holds an empty list of managedFields, which decoding drops like any empty list."""
    if "managedFields" in metadata or b'"managedFields"' not in call.request.body:
        return False
    is_yaml = "yaml" in call.request.headers.get("content-type", "")
    try:
        sent = yaml.parse(call.request.body).value if is_yaml else json.parse(call.request.body)
    except DecodeError:  # protobuf that happens to hold the word
        return False
    sent_metadata = sent.get("metadata") if isinstance(sent, dict) else None
    return isinstance(sent_metadata, dict) and sent_metadata.get("managedFields") == []


def check_name(call: Call, metadata: Object) -> None:
    """The body must be about the object that the URL names."""
    name = metadata.get("name", "")
    if not name:
        raise status.bad_request(
            f"the name of the object ({call.info.name} based on URL) was undeterminable: name must be provided"
        )
    if name != call.info.name:
        message = f"the name of the object ({name}) does not match the name on the URL ({call.info.name})"
        raise status.bad_request(message)


def _options(call: Call) -> None:
    chosen = options.write_options("UpdateOptions", call.query, call.request.query)
    context = call.context
    context.dry_run = chosen.dry_run
    context.field_manager = chosen.field_manager
    context.field_validation = chosen.field_validation
