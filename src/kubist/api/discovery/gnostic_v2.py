"""Protobuf encoding of OpenAPI v2 documents, which old clients request."""

from __future__ import annotations

from typing import Any

from kubist.api.discovery.gnostic import Fields, Gnostic
from kubist.model.codec.protobuf_wire import delimited
from kubist.model.meta.object import Object

_PARAMETER: Fields = {
    "required": (1, "bool"),
    "in": (2, "text"),
    "description": (3, "text"),
    "name": (4, "text"),
    "type": (5, "text"),
    "uniqueItems": (19, "bool"),
}
_QUERY: Fields = {
    **{name: _PARAMETER[name] for name in ("required", "in", "description", "name")},
    "type": (6, "text"),
    "uniqueItems": (20, "bool"),
}
MESSAGES: dict[str, Fields] = {
    "Document": {
        "swagger": (1, "text"),
        "info": (2, "Info"),
        "paths": (8, "Paths"),
        "definitions": (9, "*Schema"),
        "parameters": (10, "*Parameter"),
        "security": (12, "[Requirement"),
        "securityDefinitions": (13, "*Security"),
    },
    "Info": {"title": (1, "text"), "version": (2, "text")},
    "PathItem": {
        **{
            method: (number, "Operation")
            for number, method in enumerate(("get", "put", "post", "delete", "options", "head", "patch"), 2)
        },
        "parameters": (9, "[ParametersItem"),
    },
    "Operation": {
        "tags": (1, "[text"),
        "description": (3, "text"),
        "operationId": (5, "text"),
        "produces": (6, "[text"),
        "consumes": (7, "[text"),
        "parameters": (8, "[ParametersItem"),
        "responses": (9, "Responses"),
        "schemes": (10, "[text"),
    },
    "Body": {
        "description": (1, "text"),
        "name": (2, "text"),
        "in": (3, "text"),
        "required": (4, "bool"),
        "schema": (5, "Schema"),
    },
    "Query": _QUERY,
    "Path": _PARAMETER,
    "Response": {"description": (1, "text"), "schema": (2, "SchemaItem")},
    "ApiKey": {"type": (1, "text"), "name": (2, "text"), "in": (3, "text"), "description": (4, "text")},
    "Schema": {
        "$ref": (1, "text"),
        "format": (2, "text"),
        "title": (3, "text"),
        "description": (4, "text"),
        "default": (5, "Any"),
        "multipleOf": (6, "double"),
        "maximum": (7, "double"),
        "exclusiveMaximum": (8, "bool"),
        "minimum": (9, "double"),
        "exclusiveMinimum": (10, "bool"),
        "maxLength": (11, "int"),
        "minLength": (12, "int"),
        "pattern": (13, "text"),
        "maxItems": (14, "int"),
        "minItems": (15, "int"),
        "uniqueItems": (16, "bool"),
        "maxProperties": (17, "int"),
        "minProperties": (18, "int"),
        "required": (19, "[text"),
        "enum": (20, "[Any"),
        "additionalProperties": (21, "SchemaOrBool"),
        "type": (22, "Texts"),
        "items": (23, "Items"),
        "properties": (25, "*Schema"),
        "example": (30, "Any"),
    },
}
EXTENSIONS = {"PathItem": 10, "Operation": 13, "Schema": 31}


def encode(document: Object) -> bytes:
    """Encodes a whole document."""
    return _GNOSTIC.message("Document", document)


def _schema(value: Object) -> bytes:
    return delimited(b"\x0a", _GNOSTIC.message("Schema", value))


def _schema_or_bool(value: Any) -> bytes:
    return _GNOSTIC.field(2, "bool", value) if isinstance(value, bool) else _schema(value)


def _parameter_or_reference(value: Object) -> bytes:
    if "$ref" in value:
        return delimited(b"\x12", delimited(b"\x0a", value["$ref"].encode()))
    return delimited(b"\x0a", _parameter(value))


def _parameter(value: Object) -> bytes:
    match value["in"]:
        case "body":
            return delimited(b"\x0a", _GNOSTIC.message("Body", value))
        case "path":
            return delimited(b"\x12", delimited(b"\x22", _GNOSTIC.message("Path", value)))
    return delimited(b"\x12", delimited(b"\x1a", _GNOSTIC.message("Query", value)))


_GNOSTIC: Gnostic = Gnostic(
    MESSAGES,
    EXTENSIONS,
    {
        "Items": _schema,
        "SchemaItem": _schema,
        "SchemaOrBool": _schema_or_bool,
        "ParametersItem": _parameter_or_reference,
        "Parameter": _parameter,
        "Paths": lambda paths: _GNOSTIC.by_name(b"\x12", "PathItem", paths),
        "Responses": lambda responses: _GNOSTIC.by_name(b"\x0a", "ResponseItem", responses),
        "ResponseItem": lambda response: delimited(b"\x0a", _GNOSTIC.message("Response", response)),
        "Requirement": lambda value: _GNOSTIC.by_name(b"\x0a", "Texts", value),
        "Security": lambda value: delimited(b"\x12", _GNOSTIC.message("ApiKey", value)),
    },
)
