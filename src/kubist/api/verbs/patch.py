"""patch: JSON patch, merge patch, strategic merge patch and server-side apply, on objects and subresources."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from kubist.api.resources.custom import CustomResource
from kubist.api.resources.resource import Resource
from kubist.api.resources.strategy import Scale
from kubist.api.verbs import apply as apply_verb
from kubist.api.verbs import managed_fields, options, scale, write_path
from kubist.api.verbs.bodies import body, schemes
from kubist.api.verbs.metadata import check_same_object
from kubist.api.verbs.resource_request import ResourceRequest
from kubist.api.verbs.responses import negotiate_representation
from kubist.api.verbs.storage_version import (
    from_named_version,
    is_converted,
    named_version,
    to_request_version,
)
from kubist.base.http.messages import Response
from kubist.base.jsontext import json
from kubist.base.jsontext.complaints import Repeats
from kubist.base.jsontext.errors import DecodeError
from kubist.base.jsontext.quoting import quoted
from kubist.base.offload import away
from kubist.model.meta import fields, objectmeta, status
from kubist.model.meta.fields import FieldError
from kubist.model.meta.numerals import odd_number, rounded, written
from kubist.model.meta.object import Object
from kubist.model.patch import jsonpatch, merge, strategic
from kubist.model.patch.values import format_value
from kubist.model.schema.decode import restored
from kubist.model.schema.leaves import KEEP_EMPTY, WRAP
from kubist.model.schema.mistakes import first_mistake
from kubist.model.schema.node import Schema
from kubist.model.schema.order import in_declared_order

JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
TYPES = (JSON_PATCH, MERGE, STRATEGIC, APPLY)

Patch = Callable[[Object], Object]


class Change:
    """Patch of a request as a function of the current object, in the request's version. It is parsed on first use, so
    a malformed patch of an absent object gets 404."""

    def __init__(self, ctx: ResourceRequest, kind: str, schema: Schema | None = None) -> None:
        self.ctx = ctx
        self.kind = kind
        self.schema = schema or ctx.resource.schema
        self.complaints: list[str] = []
        """Field validation messages about the patch document."""
        self.repeats = Repeats()
        """Objects of the last result that come from the patch and have a duplicate key."""
        self.unknown: list[str] = []
        """Fields of the last result that its version does not have."""
        self.mistaken = False
        """Whether the last result is of another kind or version, which leaves its fields without owners."""
        self.owners: Object = {}
        """managedFields of a Scale. Error messages show them, although the current object lacks them."""
        self.beyond: DecodeError | None = None
        """Error for a number in the patch that overflows a float."""
        self._document: Any = None
        self._current: Object | None = None
        self._in_patch = self.repeats
        self._apply: Patch | None = None

    def __call__(self, current: Object) -> Object:
        if self._apply is None:
            self._apply = self._read()
        self.repeats = self._in_patch.copy()
        self.unknown, self.mistaken = [], False
        self._current = current
        return self._apply(current)

    def invalid(self, why: object) -> status.APIError:
        """422 for a patch whose result is not an object of the kind. It shows the result, or the patch if it is a
        strategic merge."""
        if self.kind == STRATEGIC:
            text = format_value(self._document)
        else:
            text = str(self.text())
            for char in "<>&":
                text = text.replace(char, f"\\u{ord(char):04x}")
        return refused(FieldError("FieldValueInvalid", "patch", f"Invalid value: {quoted(text)}: {why}"))

    def text(self) -> _PatchedText | str:
        """The text of the last result."""
        if self._current is None:
            return "{}"
        current = {**self._current, "metadata": {**self._current["metadata"], **self.owners}}
        return self._patched_text(in_declared_order(self.schema, current))

    def exact(self) -> _PatchedText:
        """The last result, with the text of its numbers."""
        assert self._current is not None
        return self._patched_text(self._current)

    def _patched_text(self, current: Object) -> _PatchedText:
        return _PatchedText(self.ctx.request.body, current, is_json_patch=self.kind == JSON_PATCH)

    def complain(self, complaints: list[str]) -> None:
        """Report field validation of the patch and its result: not at all, as warnings, or as a 422."""
        all_complaints = self.complaints + complaints + [f'unknown field "{name}"' for name in self.unknown]
        validation = self.ctx.field_validation
        if not all_complaints or validation == "Ignore":
            return
        if validation == "Strict":
            raise self.invalid(f"strict decoding error: {', '.join(all_complaints)}")
        for complaint in all_complaints:
            self.ctx.warn(complaint)

    def _out_of_range(self, error: DecodeError) -> str:
        """Error for a number that overflows a float. In a JSON patch, an earlier wrong type takes precedence."""
        if self.kind == MERGE:
            return str(error)
        document, repeats = json.parse_repeats(self.ctx.request.body, float)
        jsonpatch.operations(document, repeats=repeats)
        return str(error).replace("Go value", "Go struct field jsonPatchOp.value")

    def _read(self) -> Patch:
        checked = self.ctx.field_validation != "Ignore"
        try:
            document, repeats = json.read_repeats(self.ctx.request.body)
        except json.BeyondRange as error:
            if self.kind == STRATEGIC:
                raise status.bad_request(str(error)) from None
            if checked:
                raise status.bad_request(f"error decoding patch: {self._out_of_range(error)}") from None
            # Only the result is decoded, and it may lack that number.
            document, repeats = json.parse_repeats(self.ctx.request.body, float)
            self.beyond = error
        except DecodeError as error:
            if self.kind == MERGE and not checked:
                raise status.bad_request("Invalid JSON Patch") from None
            plain = self.kind == STRATEGIC or not checked
            raise status.bad_request(str(error) if plain else f"error decoding patch: {error}") from None
        self._document = document
        complaints = repeats.duplicate(document) if checked else []
        if self.kind == JSON_PATCH:
            operations = jsonpatch.operations(document, checked=checked, repeats=repeats)
            self.complaints = [f"json patch {complaint}" for complaint in complaints]
            self.complaints += jsonpatch.unknown_members(operations)
            self._in_patch = repeats
            return lambda current: _object(jsonpatch.apply(current, operations, self.repeats))
        self.complaints = complaints
        if self.kind == MERGE:
            merge.check(document, checked=checked)
            return lambda current: _object(merge.apply(current, document))
        if odd_number(orjson.dumps(document)):
            document = self._document = rounded(document)
        typed = dict(strategic.check(document))
        for value in (typed.pop("apiVersion", None), typed.pop("kind", None)):
            if value is not None and not isinstance(value, str):
                whole = type(value) is int
                raise self.invalid("cannot convert int64 to string" if whole else "unrecognized type: string")
        return lambda current: strategic.apply(current, typed, self.schema)


async def patch(ctx: ResourceRequest) -> Response:
    kind = patch_type(ctx)
    path = write_path.update_target(ctx)
    if isinstance(path, Scale):
        return await _patch_scale(ctx, path, kind)
    representation = negotiate_representation(ctx, "object")
    apply = kind == APPLY
    force = bool(options.read_write_options(ctx, "PatchOptions", apply=apply).force)
    if apply:
        return await apply_verb.apply(ctx, path, representation, force)
    change = Change(ctx, kind)
    target = body.expected(ctx.resource)
    converted = is_converted(ctx)
    reads_version = kind != STRATEGIC and not ctx.resource.custom

    def patched_from(current: Object) -> tuple[Object, bool]:
        """The patched object, and whether the patch clears managedFields."""
        changed = change(current)
        metadata = changed.get("metadata")
        cleared = isinstance(metadata, dict) and metadata.get("managedFields") == []
        other = named_version(ctx, changed) if reads_version else None
        if other is not None:
            new = decode(change, body.expected(other), changed)
            _complete(change, new, other)
            return from_named_version(ctx, other, new), cleared
        new = decode(change, target, changed, None if converted else current)
        _complete(change, new, ctx.resource)
        return new, cleared

    async def patched(old: Object | None, fresh: write_path.Fresh) -> Object:
        assert old is not None
        current = await fresh()
        if converted:
            current = to_request_version(ctx, current)
        new, cleared = await away(ctx.long, patched_from, current)
        check_same_object(ctx, new, old)
        # Not `current` if `new` shares parts with it, because completing `new` may have changed them.
        live = current if converted else old
        new = await write_path.finish_transform(
            ctx, path, new, old, live, cleared=cleared, owned=not change.mistaken
        )
        warning = objectmeta.deduplicate_owner_references(new["metadata"], after_admission=True)
        if warning:
            ctx.warn(warning)
        return new

    outcome = await write_path.update_object(ctx, path, patched, lend=True)
    return await write_path.respond(ctx, outcome, representation)


async def _patch_scale(ctx: ResourceRequest, path: Scale, kind: str) -> Response:
    representation = negotiate_representation(ctx, "object")
    apply = kind == APPLY
    chosen = options.read_write_options(ctx, "PatchOptions", apply=apply)
    target = scale.expected_scale()
    if apply:
        return await apply_verb.apply_scale(ctx, path, representation, bool(chosen.force))
    change = Change(ctx, kind, target.schema)

    async def patched(old: Object) -> Object:
        live = scale.view(old, path)
        if ctx.resource.custom and path.values(old)[0] is None:
            live["spec"]["replicas"] = scale.UNSET
        owners = managed_fields.of_scale(ctx, old, path)
        change.owners = {"managedFields": owners} if owners else {}
        new = decode(change, target, change(live))
        check_same_object(ctx, new, old)
        return new

    return await scale.write(ctx, path, patched, representation, None)


def patch_type(ctx: ResourceRequest) -> str:
    """Patch type by Content-Type; 415 for a type that the resource does not support."""
    header = ctx.request.headers.get("content-type", "")
    kind = header.partition(";")[0] if ";" in header[1:] else header
    offered = tuple(t for t in TYPES if not (ctx.resource.custom and t == STRATEGIC))
    if kind in offered:
        return kind
    if ctx.resource.custom or kind.strip() in offered:
        listed = ", ".join(offered)
        message = f"the body of the request was in an unknown format - accepted media types include: {listed}"
        raise status.APIError(415, "UnsupportedMediaType", message)
    raise status.APIError(
        415,
        "UnsupportedMediaType",
        "415: Unsupported Media Type",
        {},
    )


def _object(value: Any) -> Object:
    if not isinstance(value, dict):
        raise refused(FieldError("FieldValueInvalid", "patch", "Invalid value: the result is not an object"))
    return value


def refused(error: FieldError) -> status.APIError:
    """422 for a patch whose result is not an object of the kind."""
    failure = status.invalid("", "", "", [error])
    failure.message = f' "" is invalid: {error}'
    return failure


def decode(change: Change, target: body.Expected, patched: Object, stored: Object | None = None) -> Object:
    """Decode a patched document to an object of the kind. Parts taken over from the `stored` object are not decoded
    again."""
    ctx, kind = change.ctx, change.kind
    modes = (KEEP_EMPTY, WRAP) if kind == STRATEGIC else (KEEP_EMPTY,)
    if target.custom is not None:
        patched = _identified(change, target, target.custom, patched)
    elif kind != STRATEGIC and patched.get("apiVersion") in (None, "", "/", _internal(target)):
        _need_version(change, target, patched)
    if change.beyond is not None and _beyond_range(patched):
        raise change.invalid(_reason(change, target, change.beyond))
    try:
        decoded = body.decode_parsed(patched, [], target, *modes, stored=stored, repeats=change.repeats)
        if decoded.inexact and kind != STRATEGIC:
            text = change.exact()
            decoded = body.decode_parsed(text.value, [], target, *modes, repeats=text.repeats, exact=True)
    except body.Mistaken as mistaken:
        change.complain(mistaken.complaints)
        raise mistaken.error from None
    except (DecodeError, status.APIError) as error:
        if isinstance(error, status.APIError) and error.code == 422:
            change.complain([])
            raise
        if kind == STRATEGIC and isinstance(error, DecodeError):
            raise change.invalid(restored(error)) from None
        raise change.invalid(_reason(change, target, error)) from None
    change.complain(sorted(decoded.complaints) if kind == STRATEGIC else decoded.complaints)
    return body.as_sent(ctx, target, decoded, new=False)


def _reason(change: Change, target: body.Expected, error: Exception) -> object:
    """Error text for a patched object that cannot be decoded. It differs from the text for a request body."""
    if isinstance(error, body.OtherKind):
        return error.why
    if isinstance(error, body.NoKind | body.NoVersion):
        return f"{error} in '{change.text()}'"
    if target.custom is None and isinstance(error, DecodeError) and not isinstance(error, body.Unrecognized):
        text = change.text()
        if isinstance(text, _PatchedText):
            return first_mistake(target.schema, text.value, text.repeats) or error
    return error


def _identified(change: Change, target: body.Expected, custom: CustomResource, patched: Object) -> Object:
    """Patched custom object with the kind and apiVersion of the request. A patch that changes them is rejected, except
    for the status subresource, which ignores everything but the status."""
    api_version, kind = patched.get("apiVersion"), patched.get("kind")
    if (api_version, kind) == (target.api_version, target.kind) or not isinstance(api_version, str | None):
        return patched
    if not kind or not isinstance(kind, str):
        return patched  # decoding rejects it
    if api_version is None and "apiVersion" in patched:
        raise change.invalid(".apiVersion accessor error: <nil> is of the type <nil>, expected string")
    api_version = api_version or ""
    if api_version.count("/") > 1:
        raise change.invalid(f"unexpected GroupVersion string: {api_version}")
    duplicate = change.repeats.duplicate(patched)
    if api_version == "" or api_version.endswith("/"):
        if api_version.removesuffix("/") == target.group:
            change.unknown = sorted(patched.keys() - {"apiVersion", "kind", "metadata"})
        change.complain(duplicate)
        raise status.internal_error("Object 'apiVersion' is missing in 'object has no apiVersion field'")
    group = api_version.rpartition("/")[0]
    known = api_version in custom.conversion.versions
    if group == target.group and not known:
        change.unknown = sorted(patched.keys() - {"apiVersion", "kind", "metadata"})
    if change.ctx.info.subresource != "status":
        if api_version == target.api_version:
            return patched
        change.complain(duplicate)
        errors = [] if kind == target.kind else [fields.invalid("kind", kind, f"must be {target.kind}")]
        errors.append(fields.invalid("apiVersion", api_version, f"must be {target.api_version}"))
        raise status.invalid(group, kind, change.ctx.info.name, errors)
    change.mistaken = kind != target.kind or not known
    kept = {name: part for name, part in patched.items() if name not in change.unknown}
    return {**kept, "apiVersion": target.api_version, "kind": target.kind}


def _internal(target: body.Expected) -> str:
    """Internal version of a group, which kube-apiserver takes for an object without apiVersion."""
    return f"{target.group}/__internal" if target.group else "__internal"


def _need_version(change: Change, target: body.Expected, patched: Object) -> None:
    """Reject a patched built-in object without apiVersion: none of its fields is known, not even its name."""
    kind = patched.get("kind")
    if kind in (None, "", target.kind):
        change.unknown = sorted(patched.keys() - {"apiVersion", "kind"})
        change.complain([])
        why = f"the name of the object ({change.ctx.info.name} based on URL) was undeterminable"
        raise status.bad_request(f"{why}: name must be provided")
    if isinstance(kind, str):
        scheme = schemes.scheme_of(target.group)
        raise change.invalid(schemes.not_registered(scheme, _internal(target), kind))


def _complete(change: Change, new: Object, resource: Resource) -> None:
    """Set defaults. An annotation that represents a field is parsed here, so it may be malformed."""
    try:
        resource.strategy.default(new)
    except status.APIError as error:
        raise change.invalid(error.message) from None


class _PatchedText:
    """Result of a JSON patch (a list of operations) or a merge patch, with numbers as the client wrote them. Error
    messages quote its JSON text: untouched parts keep the text of the object, inserted values the text of the patch,
    and objects on the path to them are written with sorted keys. `current` is the object before the patch, with keys in
    the order of its text."""

    def __init__(self, body: bytes, current: Object, *, is_json_patch: bool) -> None:
        document, repeats = json.parse_repeats(body, json.Spelled)
        self.repeats: Repeats = repeats
        self.value: Any
        if is_json_patch:
            self.value = jsonpatch.apply(current, jsonpatch.operations(document, checked=False), repeats)
        else:
            self.value = merge.apply(current, document)
        repeats.sorted.add(id(self.value))

    def __str__(self) -> str:
        return self._written(self.value)

    def _written(self, value: Any) -> str:
        if isinstance(value, dict):
            inner = (f"{written(key)}:{self._written(item)}" for key, item in self.repeats.pairs(value))
            return f"{{{','.join(inner)}}}"
        if isinstance(value, list):
            return f"[{','.join(map(self._written, value))}]"
        return value.text if isinstance(value, json.Literal) else written(value)


def _beyond_range(value: Any) -> bool:
    """Whether a value contains a number that overflows a float."""
    if isinstance(value, dict):
        return any(map(_beyond_range, value.values()))
    if isinstance(value, list):
        return any(map(_beyond_range, value))
    return isinstance(value, float) and value - value != 0
