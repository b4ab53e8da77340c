"""Protobuf encoding of OpenAPI v3 documents, which `kubectl explain` and client libraries request first."""

from __future__ import annotations

from functools import partial
from typing import Any

from kubist.api.discovery.gnostic import Fields, Gnostic
from kubist.model.codec.protobuf_wire import delimited
from kubist.model.meta.object import Object

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
MESSAGES: dict[str, Fields] = {
    "Document": {
        "openapi": (1, "text"),
        "info": (2, "Info"),
        "paths": (4, "*PathItem"),
        "components": (5, "Components"),
    },
    "Info": {"title": (1, "text"), "description": (2, "text"), "version": (6, "text")},
    "Components": {"schemas": (1, "*Schema?"), "securitySchemes": (7, "*SecurityScheme?")},
    "SecurityScheme": {
        "type": (1, "text"),
        "description": (2, "text"),
        "name": (3, "text"),
        "in": (4, "text"),
    },
    "PathItem": {
        "summary": (2, "text"),
        "description": (3, "text"),
        **{method: (number, "Operation") for number, method in enumerate(METHODS, 4)},
        "parameters": (13, "[Parameter?"),
    },
    "Operation": {
        "tags": (1, "[text"),
        "summary": (2, "text"),
        "description": (3, "text"),
        "operationId": (5, "text"),
        "parameters": (6, "[Parameter?"),
        "requestBody": (7, "RequestBody?"),
        "responses": (8, "Responses"),
        "deprecated": (10, "bool"),
    },
    "Parameter": {
        "name": (1, "text"),
        "in": (2, "text"),
        "description": (3, "text"),
        "required": (4, "bool"),
        "schema": (10, "Schema?"),
    },
    "RequestBody": {"description": (1, "text"), "content": (2, "*MediaType"), "required": (3, "bool")},
    "Response": {"description": (1, "text"), "content": (3, "*MediaType")},
    "MediaType": {"schema": (1, "Schema?")},
    "Schema": {
        "nullable": (1, "bool"),
        "readOnly": (3, "bool"),
        "writeOnly": (4, "bool"),
        "externalDocs": (6, "ExternalDocs"),
        "example": (7, "Any"),
        "deprecated": (8, "bool"),
        "title": (9, "text"),
        "multipleOf": (10, "double"),
        "maximum": (11, "double"),
        "exclusiveMaximum": (12, "bool"),
        "minimum": (13, "double"),
        "exclusiveMinimum": (14, "bool"),
        "maxLength": (15, "int"),
        "minLength": (16, "int"),
        "pattern": (17, "text"),
        "maxItems": (18, "int"),
        "minItems": (19, "int"),
        "uniqueItems": (20, "bool"),
        "maxProperties": (21, "int"),
        "minProperties": (22, "int"),
        "required": (23, "[text"),
        "enum": (24, "[Any"),
        "type": (25, "text"),
        "allOf": (26, "[Schema?"),
        "oneOf": (27, "[Schema?"),
        "anyOf": (28, "[Schema?"),
        "not": (29, "Schema"),
        "items": (30, "Items"),
        "properties": (31, "*Schema?"),
        "additionalProperties": (32, "SchemaOrBool"),
        "default": (33, "Default"),
        "description": (34, "text"),
        "format": (35, "text"),
    },
    "ExternalDocs": {"description": (1, "text"), "url": (2, "text")},
}
"""The suffix `?` marks a value that may be a reference instead."""
EXTENSIONS = {"Operation": 13, "Schema": 36}


def encode(document: Object) -> bytes:
    """Encodes a whole document."""
    return _GNOSTIC.message("Document", document)


def _or_reference(kind: str, value: Object) -> bytes:
    if "$ref" in value:
        return delimited(b"\x12", delimited(b"\x0a", value["$ref"].encode()))
    return delimited(b"\x0a", _GNOSTIC.message(kind, value))


def _schema_or_bool(value: Any) -> bytes:
    if isinstance(value, bool):
        return _GNOSTIC.field(2, "bool", value) or b"\x10\x00"
    return delimited(b"\x0a", _or_reference("Schema", value))


def _default(value: Any) -> bytes:
    """The format holds only scalar defaults. Other defaults are encoded as an empty message."""
    match value:
        case bool():
            return b"\x10\x01" if value else b"\x10\x00"
        case int() | float():
            return _GNOSTIC.field(1, "double", value) or b"\x09" + bytes(8)
        case str():
            return delimited(b"\x1a", value.encode())
    return b""


def _responses(value: Object) -> bytes:
    default = value.get("default")
    coded = {code: response for code, response in value.items() if code != "default"}
    first = delimited(b"\x0a", _or_reference("Response", default)) if default is not None else b""
    return first + _GNOSTIC.by_name(b"\x12", "Response?", coded)


_GNOSTIC: Gnostic = Gnostic(
    MESSAGES,
    EXTENSIONS,
    {
        **{
            f"{kind}?": partial(_or_reference, kind)
            for kind in ("Schema", "Parameter", "RequestBody", "Response", "SecurityScheme")
        },
        "Items": lambda value: delimited(b"\x0a", _or_reference("Schema", value)),
        "SchemaOrBool": _schema_or_bool,
        "Default": _default,
        "Responses": _responses,
    },
)
