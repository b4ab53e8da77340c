"""Request bodies: strict decoding of JSON, YAML or protobuf to an object of the expected kind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import orjson

from kubist.api.resources.custom import CustomResource
from kubist.api.resources.resource import Resource
from kubist.api.verbs.bodies import schemes
from kubist.api.verbs.resource_request import ResourceRequest
from kubist.api.verbs.sent_object import PLAIN, SentObject
from kubist.api.verbs.storage_version import unknown_fields_of_version
from kubist.base.jsontext import json
from kubist.base.jsontext.complaints import Repeats
from kubist.base.jsontext.errors import DecodeError
from kubist.base.jsontext.json import json_type
from kubist.model.codec import negotiate, protobuf, yaml
from kubist.model.meta import status
from kubist.model.meta.object import Object
from kubist.model.schema.catalog import is_builtin, schema_for
from kubist.model.schema.decode import Mistyped
from kubist.model.schema.leaves import KEEP_EMPTY
from kubist.model.schema.mistakes import first_mistake
from kubist.model.schema.node import Schema
from kubist.model.schema.strict import Decoded, decode_body, decode_value, resolve

if TYPE_CHECKING:
    from kubist.model.codec.yaml import Document

NO_KIND = "couldn't get version/kind; json parse error"
GLIMPSE = 30
"""Maximum number of bytes of an unrecognized body that the error message shows."""


class Expected:
    """Expected kind of a body, with the schema that decodes it."""

    __slots__ = ("accepts", "api_version", "custom", "group", "kind", "schema", "version")

    def __init__(
        self,
        group: str,
        version: str,
        kind: str,
        schema: Schema,
        *,
        accepts: tuple[tuple[str, str], ...] = (),
        custom: CustomResource | None = None,
    ) -> None:
        self.group = group
        self.version = version
        self.kind = kind
        self.schema = schema
        self.api_version = f"{group}/{version}" if group else version
        self.accepts = {f"{g}/{v}" if g else v for g, v in accepts}
        self.custom = custom


def expected(resource: Resource) -> Expected:
    """Expected kind of the objects of a resource."""
    kind: Expected | None = resource.expected
    if kind is None:
        kind = resource.expected = Expected(
            resource.group,
            resource.version,
            resource.kind,
            resource.schema,
            custom=resource.custom,
        )
    return kind


def read(
    ctx: ResourceRequest, target: Expected | None = None, *, offered: tuple[str, ...] = negotiate.ALL
) -> Object:
    """Decode the body of a create or update. 400 for a malformed body or a kind other than `target`, by default the
    kind of the resource. Unknown and duplicate fields are handled as fieldValidation asks."""
    if target is None:
        target = expected(ctx.resource)
    serializer = negotiate.content_type(ctx.request.headers.get("content-type", ""), offered)
    try:
        decoded = _decode(ctx, target, serializer)
    except Mistaken as mistaken:
        complain(ctx, target, mistaken.complaints, mistaken.version)
        raise mistaken.error from None
    except DecodeError as error:
        raise _unreadable(ctx, target, error, serializer) from None
    if decoded.complaints:
        complain(ctx, target, decoded.complaints)
    return as_sent(ctx, target, decoded, new=ctx.info.verb == "create")


def as_sent(ctx: ResourceRequest, target: Expected, decoded: Decoded, *, new: bool) -> Object:
    """The decoded object with the empty lists and maps of the body that a rule asks for. They are recorded in
    `ctx.sent`, and the object keeps them until it is stored."""
    obj: Object = decoded.object
    if decoded.rewritten is None and not decoded.empties:
        ctx.sent = PLAIN
        return obj
    ctx.sent = SentObject(target.schema, decoded, new=new)
    return ctx.sent.as_sent(obj)


def parse_yaml(ctx: ResourceRequest) -> Document:
    return yaml.parse(ctx.request.body)


def complain(ctx: ResourceRequest, target: Expected, complaints: list[str], version: str = "") -> None:
    """Report unknown and duplicate fields according to fieldValidation: not at all, as warnings, or as a 400."""
    if not complaints or ctx.field_validation == "Ignore":
        return
    if ctx.field_validation == "Strict":
        listed = ", ".join(_listed(complaints))
        message = (
            f'{target.kind} in version "{version or target.version}" cannot be handled as a {target.kind}: '
        )
        raise status.bad_request(f"{message}strict decoding error: {listed}")
    for complaint in complaints:
        ctx.warn(complaint)


def _listed(complaints: list[str]) -> list[str]:
    """Messages in the order of a strict decoding error. Messages about lines of YAML are joined into one error."""
    lines = [f"\n  {complaint}" for complaint in complaints if complaint.startswith("line ")]
    others = [complaint for complaint in complaints if not complaint.startswith("line ")]
    return [f"yaml: unmarshal errors:{''.join(lines)}", *others] if lines else others


class Mistaken(Exception):
    """Body of a custom object with another kind or version. Field validation is reported before this error."""

    def __init__(self, error: status.APIError, complaints: list[str], version: str) -> None:
        super().__init__(str(error))
        self.error = error
        self.version = version
        self.complaints = complaints


class Unrecognized(DecodeError):
    """Body whose kind cannot be determined."""


class NoKind(Unrecognized):
    """A custom object without a kind. With fieldValidation Ignore it fails as an object of another kind, and the
    message shows the body as JSON."""

    def __init__(self, value: Object, version: str) -> None:
        super().__init__("Object 'Kind' is missing")
        self.json = orjson.dumps(value)
        self.version = version


class NoVersion(DecodeError):
    """An object whose apiVersion names another group and no version."""

    def __init__(self, kind: str) -> None:
        super().__init__("Object 'apiVersion' is missing")
        self.kind = kind


class OtherKind(status.APIError):
    """400 for an object of a kind that the request does not expect."""

    def __init__(self, kind: str, version: str, target: Expected, why: str) -> None:
        prefix = f'{kind} in version "{version}" cannot be handled as a {target.kind}'
        super().__init__(400, "BadRequest", f"{prefix}: {why}")
        self.why = why


def _unreadable(
    ctx: ResourceRequest, target: Expected, error: DecodeError, serializer: str
) -> status.APIError:
    body = ctx.request.body
    if isinstance(error, NoVersion):
        return OtherKind(error.kind, "", target, f"{error} in '{body.decode(errors='replace')}'")
    if isinstance(error, NoKind):
        if ctx.field_validation == "Ignore":
            text = error.json if serializer == negotiate.YAML else body
            return OtherKind(
                target.kind, error.version, target, f"{error} in '{text.decode(errors='replace')}'"
            )
        error = Unrecognized(f"{error} in '{body.decode(errors='replace')}'")
    if isinstance(error, Unrecognized):
        return status.bad_request(
            f"the object provided is unrecognized (must be of type {target.kind}): {error} ({_glimpse(body)})"
        )
    message = f'{target.kind} in version "{target.version}" cannot be handled as a {target.kind}: {error}'
    return status.bad_request(message)


def _glimpse(body: bytes) -> str:
    """First bytes of a body for an error message: text if it may be JSON, else hexadecimal."""
    if not body:
        return "<empty>"
    more = " ..." if len(body) > GLIMPSE else ""
    head = body[:GLIMPSE]
    return (head.decode(errors="replace") if head.startswith(b"{") else head.hex()) + more


def _decode(ctx: ResourceRequest, target: Expected, serializer: str) -> Decoded:
    body = ctx.request.body
    if serializer == negotiate.PROTOBUF:
        return _decode_protobuf(body, target)
    if serializer == negotiate.YAML:
        try:
            document = parse_yaml(ctx)
        except DecodeError as error:
            raise Unrecognized(str(error)) from None
        try:
            return _decode_document(document.value, list(document.complaints), target)
        except Mistyped as error:
            if target.custom is not None:
                raise
            raise first_mistake(target.schema, document.value) or error from None
    return _decode_json(body, target)


def _decode_json(body: bytes, target: Expected) -> Decoded:
    try:
        known = json.read(body)
    except json.BeyondRange as error:
        raise _out_of_range(body, target) or error from None
    except DecodeError as error:
        raise Unrecognized(f"{NO_KIND}: {error}") from None
    value, repeats = known
    all_repeats: Repeats | None = None
    if repeats:
        value, all_repeats = json.parse_repeats(body)
        if isinstance(value, dict):
            _check_type_meta(all_repeats.pairs(value))
    if target.custom is None and isinstance(value, dict):
        check_identity(value, target)
        decoded = decode_body(target.schema, body, known)
        decoded.object = identified(decoded.object, target)
        return decoded
    return _decode_document(value, all_repeats.duplicate(value) if all_repeats is not None else [], target)


def _out_of_range(body: bytes, target: Expected) -> DecodeError | None:
    """Error for a body with a number that overflows a float. An earlier mistake in the body takes precedence."""
    value, repeats = json.parse_repeats(body, json.Spelled)
    if not isinstance(value, dict):
        return None
    _check_type_meta(repeats.pairs(value))
    if target.custom is not None:
        return None
    check_identity(value, target)
    return first_mistake(target.schema, value, repeats)


def _decode_document(value: Any, complaints: list[str], target: Expected) -> Decoded:
    if value is None:
        value = {}
    if not isinstance(value, dict):
        word = json_type(value)
        raise Unrecognized(
            f"{NO_KIND}: json: cannot unmarshal "
            f'{word} into Go value of type struct {{ APIVersion string "json:\\"apiVersion,omitempty\\""; '
            'Kind string "json:\\"kind,omitempty\\"" }'
        )
    return decode_parsed(value, complaints, target, KEEP_EMPTY)


def decode_parsed(
    value: Object,
    complaints: list[str],
    target: Expected,
    *modes: str,
    stored: Object | None = None,
    repeats: Repeats | None = None,
    exact: bool = False,
) -> Decoded:
    """Decodes a parsed document to an object of the expected kind; `modes` as for `decode_value`. Parts that it shares
    with a `stored` object are not decoded again, except metadata. `repeats` are its objects with duplicate keys.
    `exact`: its numbers keep their text."""
    if target.custom is not None:
        if repeats:
            complaints = complaints + repeats.duplicate(value)
        try:
            check_identity(value, target)
            obj, unknown = target.custom.version.decode(value)
        except status.APIError as error:
            complaints = complaints + unknown_fields_of_version(target.custom, value)
            if complaints:
                version = str(value.get("apiVersion") or "").rpartition("/")[2]
                raise Mistaken(error, complaints, version) from None
            raise
        return Decoded(obj, complaints + unknown)
    check_identity(value, target)
    kept: Object = {}
    if stored is not None:
        kept = {
            name: part
            for name, part in value.items()
            if type(part) is dict and stored.get(name) is part and name != "metadata"
        }
        value = {name: part for name, part in value.items() if name not in kept}
    if repeats or exact:
        value, new_complaints = resolve(target.schema, value, repeats or Repeats())
        complaints = complaints + new_complaints
    decoded = decode_value(target.schema, value, *modes)
    decoded.object = {**identified(decoded.object, target), **kept}
    decoded.complaints = complaints + decoded.complaints
    return decoded


def check_identity(value: Object, target: Expected) -> None:
    """Check kind and apiVersion of a document. Either may be absent; otherwise it must match the request."""
    kind, api_version = value.get("kind"), value.get("apiVersion")
    if kind == target.kind and api_version == target.api_version:
        return
    _check_type_meta((("kind", kind), ("apiVersion", api_version)))
    group, version = _group_version(api_version or "")
    if target.custom is not None:
        if not kind:
            raise NoKind(value, version or target.version)
        if not group and not version:
            raise _other_version("", target)
    if not version:
        if group not in ("", target.group):
            raise NoVersion(kind or target.kind)
        group, version = target.group, target.version
    kind, api_version = kind or target.kind, f"{group}/{version}" if group else version
    if kind == target.kind and (api_version == target.api_version or api_version in target.accepts):
        return
    if target.custom is not None:
        if api_version != target.api_version:
            raise _other_version(api_version, target)
        return
    scheme = schemes.scheme_of(target.group)
    if not schemes.is_registered(scheme, group, version, kind):
        why = schemes.not_registered(scheme, api_version, kind)
    elif kind == target.kind:
        raise _other_version(api_version, target)
    else:
        why = _mistyped(value, group, version, kind)
        why = why or schemes.unknown_conversion(version, kind, target.group, target.kind)
    raise OtherKind(kind, version, target, why)


def _group_version(api_version: str) -> tuple[str, str]:
    group, _, version = api_version.rpartition("/")
    if "/" in group:
        raise Unrecognized(f"unexpected GroupVersion string: {api_version}")
    return group, version


def _mistyped(value: Object, group: str, version: str, kind: str) -> str:
    """Error from decoding a document as the kind that it names; empty if there is none."""
    if is_builtin(group, version, kind):
        try:
            decode_value(schema_for(group, version, kind), value)
        except DecodeError as error:
            return str(error)
    return ""


def _check_type_meta(pairs: Iterable[tuple[str, Any]]) -> None:
    """Check that kind and apiVersion are strings, including values that a duplicate key replaces."""
    for name, value in pairs:
        if value is not None and not isinstance(value, str) and name in ("kind", "apiVersion"):
            word = json_type(value)
            raise Unrecognized(
                f"{NO_KIND}: json: cannot unmarshal {word} into Go struct field .{name} of type string"
            )


def _other_version(api_version: str, target: Expected) -> status.APIError:
    return status.bad_request(
        f"the API version in the data ({api_version}) does not match the expected API version ({target.api_version})"
    )


def identified(obj: Object, target: Expected) -> Object:
    """Object with kind, apiVersion and metadata as its first fields."""
    obj.pop("kind", None)
    obj.pop("apiVersion", None)
    metadata = obj.pop("metadata", None) or {}
    return {"kind": target.kind, "apiVersion": target.api_version, "metadata": metadata, **obj}


def _decode_protobuf(body: bytes, target: Expected) -> Decoded:
    if target.custom is not None:
        raise status.APIError(415, "UnsupportedMediaType", "protobuf is not supported for custom resources")
    try:
        api_version, kind, raw = protobuf.unwrap(body)
    except DecodeError as error:
        raise Unrecognized(str(error)) from None
    if api_version.count("/") > 1:  # a version that cannot be read is none
        api_version = ""
    named = {key: value for key, value in (("kind", kind), ("apiVersion", api_version)) if value}
    try:
        check_identity(named, target)
    except OtherKind:
        group, version = _group_version(api_version)
        if is_builtin(group, version, kind):
            try:
                protobuf.decode(schema_for(group, version, kind), raw)
            except DecodeError as error:
                raise OtherKind(kind, version, target, str(error)) from None
        raise
    return Decoded(identified(protobuf.decode(target.schema, raw), target), [])
