"""OpenAPI v2 documents as protobuf, in the messages of gnostic: what old clients ask for.

A message is a table of its fields by their JSON names; what is not in the table is a vendor extension.
"""

from __future__ import annotations

import struct
from typing import Any

import orjson

from kubist.codec.wire import BYTES, FIXED64, VARINT, delimited, tag, varint

Object = dict[str, Any]
Fields = dict[str, tuple[int, str]]
"""By JSON name: the number, and how the value is written."""

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
_EXTENSIONS = {"PathItem": 10, "Operation": 13, "Schema": 31}


def encode(document: Object) -> bytes:
    """A whole document."""
    return _message("Document", document)


def _message(name: str, value: Object) -> bytes:
    fields = MESSAGES[name]
    parts = []
    for key, inner in sorted(value.items(), key=lambda pair: fields.get(pair[0], (99, ""))[0]):
        if key in fields:
            number, kind = fields[key]
            many = kind.startswith("[")
            for item in inner if many else (inner,):
                parts.append(_field(number, kind.removeprefix("["), item))
        elif key.startswith("x-") and name in _EXTENSIONS:
            parts.append(delimited(tag(_EXTENSIONS[name], BYTES), _named(key, _any(inner))))
    return b"".join(parts)


def _field(number: int, kind: str, value: Any) -> bytes:
    match kind:
        case "bool":
            return tag(number, VARINT) + (b"\1" if value else b"\0")
        case "int":
            return tag(number, VARINT) + varint(int(value))
        case "double":
            return tag(number, FIXED64) + struct.pack("<d", value)
    return delimited(tag(number, BYTES), _content(kind, value))


def _content(kind: str, value: Any) -> bytes:
    if kind.startswith("*"):
        return b"".join(
            delimited(b"\x0a", _named(name, _content(kind[1:], inner))) for name, inner in value.items()
        )
    match kind:
        case "text":
            return str(value).encode()
        case "Any":
            return _any(value)
        case "Texts":
            texts = value if isinstance(value, list) else [value]
            return b"".join(delimited(b"\x0a", text.encode()) for text in texts)
        case "Items":
            return delimited(b"\x0a", _message("Schema", value))
        case "SchemaItem":
            return delimited(b"\x0a", _message("Schema", value))
        case "SchemaOrBool":
            if isinstance(value, bool):
                return _field(2, "bool", value)
            return delimited(b"\x0a", _message("Schema", value))
        case "ParametersItem":
            if "$ref" in value:
                return delimited(b"\x12", delimited(b"\x0a", value["$ref"].encode()))
            return delimited(b"\x0a", _parameter(value))
        case "Parameter":
            return _parameter(value)
        case "Paths":
            return b"".join(
                delimited(b"\x12", _named(path, _message("PathItem", item))) for path, item in value.items()
            )
        case "Responses":
            return b"".join(
                delimited(b"\x0a", _named(code, delimited(b"\x0a", _message("Response", response))))
                for code, response in value.items()
            )
        case "Requirement":
            return b"".join(
                delimited(b"\x0a", _named(name, _content("Texts", scopes))) for name, scopes in value.items()
            )
        case "Security":
            return delimited(b"\x12", _message("ApiKey", value))
    return _message(kind, value)


def _parameter(value: Object) -> bytes:
    match value["in"]:
        case "body":
            return delimited(b"\x0a", _message("Body", value))
        case "path":
            return delimited(b"\x12", delimited(b"\x22", _message("Path", value)))
    return delimited(b"\x12", delimited(b"\x1a", _message("Query", value)))


def _named(name: str, content: bytes) -> bytes:
    return delimited(b"\x0a", name.encode()) + delimited(b"\x12", content)


def _any(value: Any) -> bytes:
    """Any value as YAML, of which JSON is a part."""
    return delimited(b"\x12", orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE))
