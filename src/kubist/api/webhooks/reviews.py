"""Reviews with which webhooks answer: decoded by the schema of their kind, so a wrong type is a failed call."""

from __future__ import annotations

from functools import cache
from typing import Literal

from kubist.base.jsontext import json
from kubist.base.jsontext.errors import DecodeError
from kubist.model.meta.object import Object
from kubist.model.schema.catalog import by_name
from kubist.model.schema.decode import decode
from kubist.model.schema.node import Field, Schema

LARGE = 256 << 10
"""Bytes of a review or patch from which decoding it takes too long for the event loop."""

Kind = Literal["AdmissionReview", "ConversionReview"]


def parse_review(body: bytes) -> tuple[Object, str, str]:
    """Value of a body, its apiVersion and its kind. Raises DecodeError."""
    try:
        value = json.parse(body)
    except DecodeError as error:
        raise DecodeError(f"{json.NO_KIND}: {error}") from None
    return (value, *json.type_meta(value))


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
