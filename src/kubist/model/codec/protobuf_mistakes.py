"""First error of a protobuf message that cannot be decoded, as the reference's generated code reports it.

Generated code reads a message from the beginning and stops at the first error. It checks the wire type of a
field before it reads the value. Inside map entries it checks no wire types.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from kubist.base.jsontext.errors import DecodeError
from kubist.model.codec.protobuf_wire import (
    BYTES,
    END_GROUP,
    EOF,
    FIXED32,
    FIXED64,
    START_GROUP,
    VARINT,
    read_varint,
)
from kubist.model.schema.catalog import by_name
from kubist.model.schema.node import Field, Schema

Walk = Callable[[bytes], None]
NEGATIVE = "proto: negative length found during unmarshaling"


class Shape(NamedTuple):
    """Field of a message: its Go name, the allowed wire types, and the function that checks its bytes."""

    name: str
    wire_types: tuple[int, ...]
    inner: Walk | None = None
    is_map: bool = False


def first_mistake(schema: Schema, data: bytes) -> DecodeError | None:
    """First error in a message of a type. None if there is none."""
    return _mistake_of(lambda: _struct(schema)(data))


def envelope_mistake(data: bytes) -> DecodeError | None:
    """First error in the envelope of an object. None if there is none."""
    return _mistake_of(lambda: _message("Unknown", _UNKNOWN)(data))


def _mistake_of(walk: Callable[[], None]) -> DecodeError | None:
    try:
        walk()
    except DecodeError as error:
        return error
    except RecursionError:
        pass
    return None


def _struct(schema: Schema) -> Walk:
    """Function that walks a struct's message. Its shapes are built with the first message, because a schema may contain
    itself."""

    @cache
    def message() -> Walk:
        shapes = {field.number: _shape(field) for field in schema.fields.values() if field.number}
        for embed in schema.embeds:
            shapes[embed.number] = Shape(_go_name(embed.name), (BYTES,), _struct(embed.schema))
        return _message(schema.name.rpartition(".")[2], shapes)

    return lambda data: message()(data)


def _shape(field: Field) -> Shape:
    schema, name = field.schema, _go_name(field.name)
    if schema.type in ("list", "map") and not schema.proto:
        assert schema.items is not None
        wire_types, inner = _value(schema.items)
        if schema.type == "map":
            return Shape(name, (BYTES,), inner, is_map=True)
        return (
            Shape(name, (VARINT, BYTES), _packed)
            if wire_types == (VARINT,)
            else Shape(name, wire_types, inner)
        )
    return Shape(name, *_value(schema))


def _value(schema: Schema) -> tuple[tuple[int, ...], Walk | None]:
    if schema.type == "struct":
        return (BYTES,), _struct(schema)
    if schema.type == "list":
        return (BYTES,), _message("ExtraValue", {1: Shape("Items", (BYTES,))})
    if schema.format in _MESSAGES:
        return (BYTES,), _MESSAGES[schema.format]
    if schema.type == "number":
        return (FIXED64,), None
    return ((VARINT,), None) if schema.type in ("integer", "boolean") else ((BYTES,), None)


def _message(name: str, shapes: dict[int, Shape]) -> Walk:
    def walk(data: bytes) -> None:
        at, end = 0, len(data)
        while at < end:
            start = at
            number, wire_type, at = _tag(data, at)
            if wire_type == END_GROUP:
                raise DecodeError(f"proto: {name}: wiretype end group for non-group")
            if number <= 0:
                raise DecodeError(f"proto: {name}: illegal tag {number} (wire type {wire_type})")
            shape = shapes.get(number)
            if shape is None:
                at = _skipped(data, start, end)
                continue
            if wire_type not in shape.wire_types:
                raise DecodeError(f"proto: wrong wireType = {wire_type} for field {shape.name}")
            if wire_type == VARINT:
                at = read_varint(data, at)[1]
            elif wire_type == FIXED64:
                at += 8
                if at > end:
                    raise DecodeError(EOF)
            else:
                stop = _delimited(data, at)
                if shape.is_map:
                    _walk_entry(data, stop[0], stop[1], shape.inner)
                elif shape.inner is not None:
                    shape.inner(data[stop[0] : stop[1]])
                at = stop[1]

    return walk


def _walk_entry(data: bytes, at: int, end: int, inner: Walk | None) -> None:
    """Checks a map entry. Its key and value may extend beyond it, up to the end of the message.

    A value that does is not checked: values of many entries would contain each other.
    """
    while at < end:
        start = at
        number, _, at = _tag(data, at)
        if number in (1, 2):
            begin, at = _delimited(data, at)
            if number == 2 and inner is not None and at <= end:
                inner(data[begin:at])
        else:
            at = _skipped(data, start, end)


def _tag(data: bytes, at: int) -> tuple[int, int, int]:
    """Number and wire type of a field, and the position of its value. Numbers are signed 32-bit integers."""
    key, at = read_varint(data, at)
    number = key >> 3 & 0xFFFFFFFF
    return number - (1 << 32) if number >> 31 else number, key & 7, at


def _delimited(data: bytes, at: int) -> tuple[int, int]:
    """Start and end of the bytes after a length."""
    length, at = read_varint(data, at)
    if length + at >= 1 << 63:
        raise DecodeError(NEGATIVE)
    if at + length > len(data):
        raise DecodeError(EOF)
    return at, at + length


def _skipped(data: bytes, at: int, end: int) -> int:
    """Position after an unknown field."""
    depth = 0
    while at < len(data):
        key, at = read_varint(data, at)
        wire_type = key & 7
        if wire_type == VARINT:
            at = read_varint(data, at)[1]
        elif wire_type == FIXED64:
            at += 8
        elif wire_type == BYTES:
            length, at = read_varint(data, at)
            if length + at >= 1 << 63:
                raise DecodeError(NEGATIVE)
            at += length
        elif wire_type == START_GROUP:
            depth += 1
        elif wire_type == END_GROUP:
            if not depth:
                raise DecodeError("proto: unexpected end of group")
            depth -= 1
        elif wire_type == FIXED32:
            at += 4
        else:
            raise DecodeError(f"proto: illegal wireType {wire_type}")
        if not depth:
            if at > end:
                break
            return at
    raise DecodeError(EOF)


def _packed(data: bytes) -> None:
    at = 0
    while at < len(data):
        at = read_varint(data, at)[1]


def _props(data: bytes) -> None:

    _struct(by_name("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"))(data)


_TEXT = (BYTES,)
_NUMBER = (VARINT,)
_TIMESTAMP = _message("Timestamp", {1: Shape("Seconds", _NUMBER), 2: Shape("Nanos", _NUMBER)})
_INT_OR_STRING = {1: Shape("Type", _NUMBER), 2: Shape("IntVal", _NUMBER), 3: Shape("StrVal", _TEXT)}
_RAW = {1: Shape("Raw", _TEXT)}
_SCHEMA = Shape("Schema", _TEXT, _props)
_MESSAGES: dict[str, Walk] = {
    "quantity": _message("Quantity", {1: Shape("String_", _TEXT)}),
    "time": _TIMESTAMP,
    "microtime": _TIMESTAMP,
    "int-or-string": _message("IntOrString", _INT_OR_STRING),
    "raw": _message("RawExtension", _RAW),
    "fields-v1": _message("FieldsV1", _RAW),
    "json": _message("JSON", _RAW),
    "schema-or-array": _message(
        "JSONSchemaPropsOrArray", {1: _SCHEMA, 2: Shape("JSONSchemas", _TEXT, _props)}
    ),
    "schema-or-strings": _message("JSONSchemaPropsOrStringArray", {1: _SCHEMA, 2: Shape("Property", _TEXT)}),
    "schema-or-bool": _message("JSONSchemaPropsOrBool", {1: Shape("Allows", _NUMBER), 2: _SCHEMA}),
}
_TYPE_META = _message("TypeMeta", {1: Shape("APIVersion", _TEXT), 2: Shape("Kind", _TEXT)})
_UNKNOWN = {
    1: Shape("TypeMeta", _TEXT, _TYPE_META),
    2: Shape("Raw", _TEXT),
    3: Shape("ContentEncoding", _TEXT),
    4: Shape("ContentType", _TEXT),
}
_INITIALISMS = frozenset(
    [
        *("api", "aws", "ca", "cel", "cidr", "cidrs", "csi", "dns", "fc", "fs", "gce", "gid", "gmsa", "grpc"),
        *("http", "ip", "ips", "iqn", "iscsi", "json", "nfs", "os", "pd", "pkix", "qos", "rbd", "se", "ssl"),
        *("tcp", "tls", "ttl", "tty", "uid", "url", "wwids"),
    ]
)


def _go_name(name: str) -> str:
    """Go name of a field, from its JSON name."""
    if name == "metadata":
        return "ObjectMeta"
    first = next((index for index, char in enumerate(name) if char.isupper()), len(name))
    word, rest = name[:first], name[first:]
    return (word.upper() if word in _INITIALISMS else word[:1].upper() + word[1:]) + rest
