"""patch: JSON Patch, merge patch, strategic merge patch and server-side apply, on objects and sub-resources."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubist.codec import json
from kubist.codec.complaints import Repeats
from kubist.codec.errors import DecodeError
from kubist.http.messages import Response
from kubist.kinds.strategy import Scale
from kubist.meta import fields, objectmeta, status
from kubist.meta.fields import FieldError
from kubist.patch import jsonpatch, merge, strategic
from kubist.schema.leaves import KEEP_EMPTY, WRAP
from kubist.schema.node import Schema
from kubist.turns import away
from kubist.verbs import body, create, guarded, managed, options, scale, update
from kubist.verbs.call import Call

Object = dict[str, Any]

JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
TYPES = (JSON_PATCH, MERGE, STRATEGIC, APPLY)

Patch = Callable[[Object], Object]


class Change:
    """The patch of a request as a function of the current object (in the request's version).

    It is read on the first use: a patch of an object that is not there is not looked at."""

    def __init__(self, call: Call, kind: str, schema: Schema | None = None) -> None:
        self.call = call
        self.kind = kind
        self.schema = schema or call.resource.schema
        self.complaints: list[str] = []
        """What field validation finds in the patch itself."""
        self.repeats = Repeats()
        """The objects that the last result has of the patch and that name a key more than once."""
        self._in_patch = self.repeats
        self._apply: Patch | None = None

    def __call__(self, current: Object) -> Object:
        if self._apply is None:
            self._apply = self._read()
        self.repeats = self._in_patch.copy()
        return self._apply(current)

    def _read(self) -> Patch:
        checked = self.call.context.field_validation != "Ignore"
        try:
            document, repeats = json.read_repeats(self.call.request.body)
        except DecodeError as error:
            raise status.bad_request(f"error decoding patch: {error}") from None
        complaints = repeats.duplicate(document) if checked else []
        if self.kind == JSON_PATCH:
            operations = jsonpatch.operations(document, checked=checked)
            self.complaints = [f"json patch {complaint}" for complaint in complaints]
            self.complaints += jsonpatch.unknown_members(operations)
            self._in_patch = repeats
            return lambda current: _object(jsonpatch.apply(current, operations, self.repeats))
        self.complaints = complaints
        if self.kind == MERGE:
            merge.check(document, checked=checked)
            return lambda current: _object(merge.apply(current, document))
        typed = {
            key: value
            for key, value in strategic.check(document).items()
            if key not in ("kind", "apiVersion")
        }
        return lambda current: strategic.apply(current, typed, self.schema)


async def patch(call: Call) -> Response:
    kind = patch_type(call)
    path = update.way_in(call)
    if isinstance(path, Scale):
        return await scale.patch(call, path, kind)
    shown = call.negotiate("object")
    apply = kind == APPLY
    force = _options(call, apply)
    if apply:
        from kubist.verbs import apply as apply_verb

        return await apply_verb.apply(call, path, shown, force)
    change = Change(call, kind)
    wanted = body.expected(call.resource)
    converted = create.converts(call)

    def patched_from(current: Object) -> tuple[Object, bool]:
        """The patched object, and whether the patch clears managedFields."""
        changed = change(current)
        metadata = changed.get("metadata")
        cleared = isinstance(metadata, dict) and metadata.get("managedFields") == []
        new = decode(change, wanted, changed, None if converted else current)
        _complete(call, new)
        return new, cleared

    async def patched(old: Object | None, fresh: guarded.Fresh) -> Object:
        assert old is not None
        current = await fresh()
        if converted:
            current = create.from_storage(call, current)
        new, cleared = await away(call.long, patched_from, current)
        check_identity(call, new, old)
        # Not `current` where `new` shares parts with it: completing `new` may have changed them.
        live = current if converted else old
        if (pending := managed.tracked(call, new, live, path.reset_fields, cleared=cleared)) is not None:
            await pending
        if converted:
            new = create.to_storage(call, new)
        await call.api.admission.admit(call.context, new, old)
        warning = objectmeta.deduplicate_owner_references(new["metadata"], after_admission=True)
        if warning:
            call.context.warn(warning)
        return new

    outcome = await guarded.update(call, path, patched, lend=True)
    return await update.answer(call, outcome, shown)


def patch_type(call: Call) -> str:
    """The type of the patch; 415 for one that the resource does not take."""
    header = call.request.headers.get("content-type", "")
    kind = header.partition(";")[0] if ";" in header[1:] else header
    offered = tuple(t for t in TYPES if not (call.resource.custom and t == STRATEGIC))
    if kind in offered:
        return kind
    if call.resource.custom or kind.strip() in offered:
        listed = ", ".join(offered)
        message = f"the body of the request was in an unknown format - accepted media types include: {listed}"
        raise status.APIError(415, "UnsupportedMediaType", message)
    raise status.APIError(
        415,
        "UnsupportedMediaType",
        "the server responded with the status code 415 but did not return more information",
        {},
    )


def _options(call: Call, apply: bool) -> bool:
    chosen = options.write_options("PatchOptions", call.query, call.request.query, apply=apply)
    context = call.context
    context.dry_run = chosen.dry_run
    context.field_manager = chosen.field_manager
    context.field_validation = chosen.field_validation
    return bool(chosen.force)


def _object(value: Any) -> Object:
    if not isinstance(value, dict):
        raise refused(FieldError("FieldValueInvalid", "patch", "Invalid value: the result is not an object"))
    return value


def _complain(call: Call, complaints: list[str]) -> None:
    if not complaints or call.context.field_validation == "Ignore":
        return
    if call.context.field_validation == "Strict":
        raise refused_strictly(complaints)
    for complaint in complaints:
        call.context.warn(complaint)


def refused_strictly(complaints: list[str]) -> status.APIError:
    body_ = f'Invalid value: "<patch>": strict decoding error: {", ".join(complaints)}'
    return refused(FieldError("FieldValueInvalid", "patch", body_))


def refused(error: FieldError) -> status.APIError:
    """422 of a patch whose result cannot be an object of the kind."""
    failure = status.invalid("", "", "", [error])
    failure.message = f' "" is invalid: {error}'
    return failure


def decode(change: Change, wanted: body.Expected, patched: Object, stored: Object | None = None) -> Object:
    """The document that a patch made (of an object as it is stored) as an object of the kind."""
    call, kind = change.call, change.kind
    asked = (KEEP_EMPTY, WRAP) if kind == STRATEGIC else (KEEP_EMPTY,)
    if wanted.custom is not None:
        _keep_version(change, wanted, patched)
    elif kind != STRATEGIC and not patched.get("apiVersion"):
        _need_version(change, wanted, patched)
    try:
        decoded = body.decode_parsed(patched, [], wanted, *asked, stored=stored, repeats=change.repeats)
    except (DecodeError, status.APIError) as error:
        if isinstance(error, status.APIError) and error.code == 422:
            raise
        raise refused(
            FieldError("FieldValueInvalid", "patch", f'Invalid value: "<patch>": {error}')
        ) from None
    _complain(call, change.complaints + decoded.complaints)
    call.empties = decoded.empties
    body.note_empty(call, wanted, decoded, new=False)
    obj: Object = decoded.object
    return obj


def _keep_version(change: Change, wanted: body.Expected, patched: Object) -> None:
    """A patch cannot move a custom object to another version, in which no field would be known."""
    given = patched.get("apiVersion")
    if isinstance(given, str) and given and given != wanted.api_version:
        unknown = sorted(patched.keys() - {"apiVersion", "kind", "metadata"})
        _complain(change.call, change.complaints + [f'unknown field "{name}"' for name in unknown])
        error = fields.invalid("apiVersion", given, f"must be {wanted.api_version}")
        raise status.invalid(wanted.group, wanted.kind, change.call.info.name, [error])


def _need_version(change: Change, wanted: body.Expected, patched: Object) -> None:
    """Without a version no field of a built-in kind has a meaning, and so the object has no name."""
    if patched.get("kind") in (None, "", wanted.kind) and patched.get("apiVersion") in (None, ""):
        unknown = sorted(patched.keys() - {"apiVersion", "kind"})
        _complain(change.call, change.complaints + [f'unknown field "{name}"' for name in unknown])
        why = f"the name of the object ({change.call.info.name} based on URL) was undeterminable"
        raise status.bad_request(f"{why}: name must be provided")


def _complete(call: Call, new: Object) -> None:
    """Fill in defaults. What cannot be read only shows now where an annotation stands for a field."""
    try:
        call.resource.strategy.default(new)
    except status.APIError as error:
        body_ = f'Invalid value: "<patch>": {error.message}'
        raise refused(FieldError("FieldValueInvalid", "patch", body_)) from None


def check_identity(call: Call, new: Object, old: Object) -> None:
    """A patch may not make an object another one."""
    metadata, before = new["metadata"], old["metadata"]
    where = before.get("namespace", "")
    if call.resource.namespaced and metadata.setdefault("namespace", where) != where:
        raise status.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    update.check_name(call, metadata)
