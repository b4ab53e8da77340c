"""Reviews with which webhooks answer: decoded by the schema of their kind, so a wrong type is a failed call."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

import orjson

from kubist.base.jsontext import json
from kubist.base.jsontext.errors import DecodeError
from kubist.model.meta.object import Object
from kubist.model.schema.catalog import by_name
from kubist.model.schema.decode import decode
from kubist.model.schema.node import Field, Schema

LARGE = 256 << 10
"""Bytes of a review or patch from which decoding it takes too long for the event loop."""

VALUES_LIMIT = 500_000
"""Maximum number of strings, lists and objects in a review or patch. Their parser cannot be interrupted."""

Kind = Literal["AdmissionReview", "ConversionReview"]


def parse_review(body: bytes) -> tuple[Object, str, str]:
    """Value of a body, its apiVersion and its kind. Raises DecodeError. The slow parser, which knows Go's messages and
    accepts its encoding errors, is for small bodies only."""
    try:
        value = parse_large(body) if len(body) > LARGE else json.parse(body)
    except (orjson.JSONDecodeError, DecodeError) as error:
        raise DecodeError(f"{json.NO_KIND}: {error}") from None
    return (value, *json.type_meta(value))


def parse_large(body: bytes) -> Any:
    """Value of a body. Raises DecodeError if it has more than VALUES_LIMIT values, and orjson.JSONDecodeError."""
    if len(body) > LARGE and body.count(b'"') // 2 + body.count(b"[") + body.count(b"{") > VALUES_LIMIT:
        raise DecodeError(f"the JSON has more than {VALUES_LIMIT} values")
    return orjson.loads(body)


def response_of(value: Object, kind: Kind, version: str) -> Object | None:
    """Response of a review. The request is not decoded. Raises DecodeError for a wrong type."""
    response: Object | None = decode(_review(kind, version), value).get("response")
    return response


@cache
def _review(kind: Kind, version: str) -> Schema:
    """Schema of a review. `version` is v1 or v1beta1."""
    status = by_name("io.k8s.apimachinery.pkg.apis.meta.v1.Status")
    uid = Field("uid", Schema("string", go_type="types.UID"), omit_empty=False)
    text = Schema("string")
    if kind == "AdmissionReview":
        package = f"io.k8s.api.admission.{version}"
        response = _struct(
            f"{package}.AdmissionResponse",
            uid,
            Field("allowed", Schema("boolean"), omit_empty=False),
            Field("status", status, pointer=True),
            Field("patch", Schema("string", format="byte")),
            Field("patchType", Schema("string", go_type=f"{version}.PatchType"), pointer=True),
            Field("auditAnnotations", Schema("map", items=text)),
            Field("warnings", Schema("list", items=text)),
        )
    else:
        package = f"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.{version}"
        objects = Schema("list", items=Schema("any"), go_type="[]runtime.RawExtension")
        response = _struct(
            f"{package}.ConversionResponse",
            uid,
            Field("convertedObjects", objects, omit_empty=False),
            Field("result", status),
        )
    return _struct(f"{package}.{kind}", Field("response", response, pointer=True))


def _struct(name: str, *fields: Field) -> Schema:
    return Schema("struct", name=name, fields={field.name: field for field in fields})
