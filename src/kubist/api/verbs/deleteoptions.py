"""DeleteOptions: the body of a delete, in any of the serializers."""

from __future__ import annotations

from kubist.api.verbs import schemes
from kubist.api.verbs.body import NO_KIND
from kubist.api.verbs.resource_request import ResourceRequest
from kubist.base.jsontext import json
from kubist.base.jsontext.errors import DecodeError
from kubist.model.codec import negotiate, protobuf, yaml
from kubist.model.meta import status
from kubist.model.meta.object import Object
from kubist.model.schema.catalog import schema_for
from kubist.model.schema.mistakes import first_mistake
from kubist.model.schema.node import Schema
from kubist.model.schema.strict import decode_body, decode_value


def read(ctx: ResourceRequest) -> Object | None:
    """DeleteOptions of the body, in any API group; None without a body."""
    body = ctx.request.body
    if not body:
        return None
    schema = schema_for("", "v1", "DeleteOptions")
    serializer = negotiate.content_type(ctx.request.headers.get("content-type", ""))
    try:
        if serializer == negotiate.PROTOBUF:
            api_version, kind, raw = protobuf.unwrap(body)
            _check_kind(api_version, kind)
            obj: Object = protobuf.decode(schema, raw)
        else:
            obj = _delete_options(schema, body, serializer)
    except DecodeError as error:
        raise status.bad_request(str(error)) from None
    return obj


def _check_kind(api_version: str, kind: str) -> None:
    """Check that the body is DeleteOptions. Every API group has that kind."""
    if kind in ("", "DeleteOptions"):
        return
    api_version = api_version if api_version not in ("", "/") else "meta.k8s.io/v1"
    group, _, version = api_version.rpartition("/")
    if not schemes.is_registered(schemes.OPTIONS, group, version, kind):
        raise DecodeError(schemes.not_registered(schemes.OPTIONS, api_version, kind))
    if kind not in ("Table", "PartialObjectMetadata", "PartialObjectMetadataList"):
        version = "v1"
    raise DecodeError(f"converting ({version}.{kind}) to (v1.DeleteOptions): unknown conversion")


def _delete_options(schema: Schema, body: bytes, serializer: str) -> Object:
    if serializer == negotiate.YAML:
        value, known = yaml.parse(body).value, None
    else:
        try:
            known = json.read(body)
        except json.BeyondRange as error:
            raise first_mistake(schema, *json.parse_repeats(body, json.Spelled)) or error from None
        except DecodeError as error:
            raise DecodeError(f"{NO_KIND}: {error}") from None
        value = known[0]
    api_version, kind = json.type_meta(value)
    if api_version.count("/") > 1:
        raise DecodeError(f"unexpected GroupVersion string: {api_version}")
    if api_version[1:].endswith("/") and api_version != "meta.k8s.io/":
        raise DecodeError(f"Object 'apiVersion' is missing in '{body.decode(errors='replace')}'")
    _check_kind(api_version, kind)
    decoded = decode_value(schema, value or {}) if known is None else decode_body(schema, body, known)
    obj: Object = decoded.object
    return obj
