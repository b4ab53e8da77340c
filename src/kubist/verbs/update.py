"""update: PUT of an object or of a subresource."""

from __future__ import annotations

from kubist.codec import yaml
from kubist.http.messages import Response
from kubist.jsontext import json
from kubist.jsontext.errors import DecodeError
from kubist.meta import objectmeta, status
from kubist.meta.object import Object
from kubist.offload import away
from kubist.resources.strategy import Scale
from kubist.verbs import body, options, scale, schemes, write_path
from kubist.verbs.call import Call
from kubist.verbs.lending import Fresh
from kubist.verbs.metadata import check_name, match_namespace


async def update(call: Call) -> Response:
    path = write_path.update_target(call)
    if isinstance(path, Scale):
        return await _update_scale(call, path)
    shown = call.negotiate("object")
    options.read_write_options(call, "UpdateOptions")
    obj, cleared = await away(call.long, _read, call)
    metadata = obj["metadata"]
    unused: Object | None = obj

    async def replace(old: Object | None, fresh: Fresh) -> Object:
        nonlocal unused
        # Whoever gets the object may change it: another try reads the body again.
        new, unused = unused if unused is not None else await away(call.long, _sent, call), None
        live = await write_path.in_request_version(call, old, fresh)
        return await write_path.finish_transform(call, path, new, old, live, cleared=cleared)

    outcome = await write_path.update_object(
        call,
        path,
        replace,
        create_absent=call.resource.strategy.create_on_update,
        precondition_uid=metadata.get("uid"),
    )
    return await write_path.respond(call, outcome, shown)


async def _update_scale(call: Call, path: Scale) -> Response:
    shown = call.negotiate("object")
    options.read_write_options(call, "UpdateOptions")
    try:
        new = body.read(call, scale.expected_scale())
    except status.APIError as error:
        if not call.resource.custom or error.code != 400:
            raise
        # The scheme of custom resources holds options alone.
        why = f'no kind is registered for the type v1.Scale in scheme "{schemes.CUSTOM}"'
        raise status.bad_request(why) from None
    match_namespace(call, new["metadata"])
    check_name(call, new["metadata"])

    async def replaced(_old: Object) -> Object:
        return new

    return await scale.write(call, path, replaced, shown, new["metadata"].get("uid"))


def _read(call: Call) -> tuple[Object, bool]:
    """Object of the body, and whether it clears managedFields."""
    obj = _sent(call)
    return obj, clears_managers(call, obj["metadata"])


def _sent(call: Call) -> Object:
    """Object of the body with defaults. It must have the name and namespace of the URL."""
    obj = body.read(call, body.expected(call.resource))
    call.resource.strategy.default(obj)
    metadata = obj["metadata"]
    match_namespace(call, metadata)
    check_name(call, metadata)
    warning = objectmeta.deduplicate_owner_references(metadata)
    if warning:
        call.context.warn(warning)
    return obj


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
