"""Protobuf encoding of OpenAPI documents, in gnostic's messages. A message is a table of its fields by JSON
name.

Keys that start with `x-` and are not in the table are vendor extensions. Old clients request OpenAPI v2; `kubectl
explain` and client libraries request v3 first.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial
from typing import Any

import orjson

from kubist.model.codec.protobuf_wire import BYTES, FIXED64, VARINT, delimited, tag, varint
from kubist.model.codec.yaml_emit import flow
from kubist.model.meta.object import Object

Fields = dict[str, tuple[int, str]]
"""JSON name → field number, and the kind of the value (a message, a scalar or a key of `unions`). The prefix `[` marks
a repeated field, the prefix `*` a map from names to values of that kind."""


class Gnostic:
    """Encoder for the messages of one format. `unions` holds encoders for kinds that a table cannot describe."""

    def __init__(
        self,
        messages: dict[str, Fields],
        extensions: dict[str, int],
        unions: dict[str, Callable[[Any], bytes]],
    ) -> None:
        self.messages = messages
        self.extensions = extensions
        self.unions = unions

    def message(self, name: str, value: Object) -> bytes:
        fields = self.messages[name]
        parts = []
        for key, inner in sorted(value.items(), key=lambda pair: fields.get(pair[0], (99, ""))[0]):
            if key in fields:
                number, kind = fields[key]
                many = kind.startswith("[")
                for item in inner if many else (inner,):
                    parts.append(self.field(number, kind.removeprefix("["), item))
            elif key.startswith("x-") and name in self.extensions:
                parts.append(delimited(tag(self.extensions[name], BYTES), named(key, any_value(inner))))
        return b"".join(parts)

    def field(self, number: int, kind: str, value: Any) -> bytes:
        match kind:
            case "bool":
                return tag(number, VARINT) + b"\1" if value else b""
            case "int":
                return tag(number, VARINT) + varint(int(value)) if value else b""
            case "double":
                return tag(number, FIXED64) + struct.pack("<d", value) if value else b""
        return delimited(tag(number, BYTES), self.content(kind, value))

    def content(self, kind: str, value: Any) -> bytes:
        if kind.startswith("*"):
            return self.by_name(b"\x0a", kind[1:], value)
        match kind:
            case "text":
                return str(value).encode()
            case "Any":
                return any_value(value)
            case "Texts":
                texts = value if isinstance(value, list) else [value]
                return b"".join(delimited(b"\x0a", text.encode()) for text in texts)
        union = self.unions.get(kind)
        return union(value) if union is not None else self.message(kind, value)

    def by_name(self, number: bytes, kind: str, value: Object) -> bytes:
        return b"".join(
            delimited(number, named(name, self.content(kind, inner))) for name, inner in value.items()
        )


def named(name: str, content: bytes) -> bytes:
    return delimited(b"\x0a", name.encode()) + delimited(b"\x12", content)


def any_value(value: Any) -> bytes:
    """A gnostic Any: the value as YAML."""
    return delimited(b"\x12", "".join(line + "\n" for line in _yaml(value)).encode())


def _yaml(value: Any) -> list[str]:
    """Lines of YAML. The order of keys is kept."""
    if not isinstance(value, dict | list) or not value:
        return [flow(value) if isinstance(value, str) else orjson.dumps(value).decode()]
    lines = []
    if isinstance(value, list):
        for item in value:
            first, *rest = _yaml(item)
            lines += [f"- {first}", *(f"  {line}" for line in rest)]
        return lines
    for key, item in value.items():
        inner = _yaml(item)
        if isinstance(item, dict | list) and item:
            lines += [f"{key}:", *(f"  {line}" for line in inner)]
        else:
            lines.append(f"{key}: {inner[0]}")
    return lines


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
_MESSAGES_V2: dict[str, Fields] = {
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
_EXTENSIONS_V2 = {"PathItem": 10, "Operation": 13, "Schema": 31}


def encode_v2(document: Object) -> bytes:
    """Encodes a whole document."""
    return _GNOSTIC_V2.message("Document", document)


def _schema_v2(value: Object) -> bytes:
    return delimited(b"\x0a", _GNOSTIC_V2.message("Schema", value))


def _schema_or_bool_v2(value: Any) -> bytes:
    return _GNOSTIC_V2.field(2, "bool", value) if isinstance(value, bool) else _schema_v2(value)


def _parameter_or_reference_v2(value: Object) -> bytes:
    if "$ref" in value:
        return delimited(b"\x12", delimited(b"\x0a", value["$ref"].encode()))
    return delimited(b"\x0a", _parameter_v2(value))


def _parameter_v2(value: Object) -> bytes:
    match value["in"]:
        case "body":
            return delimited(b"\x0a", _GNOSTIC_V2.message("Body", value))
        case "path":
            return delimited(b"\x12", delimited(b"\x22", _GNOSTIC_V2.message("Path", value)))
    return delimited(b"\x12", delimited(b"\x1a", _GNOSTIC_V2.message("Query", value)))


_GNOSTIC_V2: Gnostic = Gnostic(
    _MESSAGES_V2,
    _EXTENSIONS_V2,
    {
        "Items": _schema_v2,
        "SchemaItem": _schema_v2,
        "SchemaOrBool": _schema_or_bool_v2,
        "ParametersItem": _parameter_or_reference_v2,
        "Parameter": _parameter_v2,
        "Paths": lambda paths: _GNOSTIC_V2.by_name(b"\x12", "PathItem", paths),
        "Responses": lambda responses: _GNOSTIC_V2.by_name(b"\x0a", "ResponseItem", responses),
        "ResponseItem": lambda response: delimited(b"\x0a", _GNOSTIC_V2.message("Response", response)),
        "Requirement": lambda value: _GNOSTIC_V2.by_name(b"\x0a", "Texts", value),
        "Security": lambda value: delimited(b"\x12", _GNOSTIC_V2.message("ApiKey", value)),
    },
)


_METHODS_V3 = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_MESSAGES_V3: dict[str, Fields] = {
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
        **{method: (number, "Operation") for number, method in enumerate(_METHODS_V3, 4)},
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
_EXTENSIONS_V3 = {"Operation": 13, "Schema": 36}


def encode_v3(document: Object) -> bytes:
    """Encodes a whole document."""
    return _GNOSTIC_V3.message("Document", document)


def _or_reference(kind: str, value: Object) -> bytes:
    if "$ref" in value:
        return delimited(b"\x12", delimited(b"\x0a", value["$ref"].encode()))
    return delimited(b"\x0a", _GNOSTIC_V3.message(kind, value))


def _schema_or_bool_v3(value: Any) -> bytes:
    if isinstance(value, bool):
        return _GNOSTIC_V3.field(2, "bool", value) or b"\x10\x00"
    return delimited(b"\x0a", _or_reference("Schema", value))


def _default(value: Any) -> bytes:
    """The format holds only scalar defaults. Other defaults are encoded as an empty message."""
    match value:
        case bool():
            return b"\x10\x01" if value else b"\x10\x00"
        case int() | float():
            return _GNOSTIC_V3.field(1, "double", value) or b"\x09" + bytes(8)
        case str():
            return delimited(b"\x1a", value.encode())
    return b""


def _responses(value: Object) -> bytes:
    default = value.get("default")
    coded = {code: response for code, response in value.items() if code != "default"}
    first = delimited(b"\x0a", _or_reference("Response", default)) if default is not None else b""
    return first + _GNOSTIC_V3.by_name(b"\x12", "Response?", coded)


_GNOSTIC_V3: Gnostic = Gnostic(
    _MESSAGES_V3,
    _EXTENSIONS_V3,
    {
        **{
            f"{kind}?": partial(_or_reference, kind)
            for kind in ("Schema", "Parameter", "RequestBody", "Response", "SecurityScheme")
        },
        "Items": lambda value: delimited(b"\x0a", _or_reference("Schema", value)),
        "SchemaOrBool": _schema_or_bool_v3,
        "Default": _default,
        "Responses": _responses,
    },
)
