"""Protobuf decoder: messages to objects by the field numbers of the schema, then to canonical form as for JSON.

Unknown fields are skipped. The last of repeated scalars wins; repeated messages are merged, which equals one
message with both contents. A malformed message is a `DecodeError`.
"""

from __future__ import annotations

import struct
from base64 import b64encode
from collections.abc import Callable
from typing import Any

from kubist.base.jsontext import syntax as json_syntax
from kubist.base.jsontext.errors import DecodeError
from kubist.base.jsontext.json import parse
from kubist.model.codec.protobuf_mistakes import first_mistake
from kubist.model.codec.protobuf_wire import Fixed, fields, read_varint
from kubist.model.meta.times import format_micro_time, format_time
from kubist.model.schema.catalog import by_name
from kubist.model.schema.decode import decode as canonical
from kubist.model.schema.leaves import SetInteger, SetText
from kubist.model.schema.node import Field, Schema

Read = Callable[[Any], Any]
Reader = tuple[str, str, Read]
"""Reader of a field: collection mode (`one`, `message`, `many`, `packed`, `map`, `inline`), JSON name, and the
function that reads the value."""

_readers: dict[str, dict[int, Reader]] = {}
"""Readers of the process by OpenAPI name."""


def decode(schema: Schema, data: bytes) -> Any:
    """Canonical object of a message, without kind and apiVersion, which are in the envelope."""
    try:
        return canonical(schema, _struct(schema, data))
    except DecodeError as error:
        raise first_mistake(schema, data) or error from None
    except RecursionError:
        raise DecodeError("exceeded max depth") from None


def _struct(schema: Schema, data: Any) -> dict[str, Any]:
    """Fields of a message. Every part of it is read once: repeated messages are joined first."""
    readers = _readers.get(schema.name) or _compile(schema)
    out: dict[str, Any] = {}
    name = ""
    pairs = fields(_octets(data), schema.name)
    messages: dict[int, tuple[Reader, Any]] = {}
    repeated: set[int] = set()
    try:
        for number, value in pairs:
            reader = readers.get(number)
            if reader is None:
                continue
            how, name, read = reader
            if how == "one":
                out[name] = read(value)
            elif how == "message" or how == "inline":
                if number in messages:
                    repeated.add(number)
                else:
                    messages[number] = (reader, value)
            elif how == "many":
                out.setdefault(name, []).append(read(value))
            elif how == "packed":
                out.setdefault(name, []).extend(_packed(read, value))
            elif how == "map":
                key, item = _entry(read, value)
                out.setdefault(name, {})[key] = item
        for number, ((how, name, read), value) in messages.items():
            message = read(_joined(pairs, number) if number in repeated else value)
            if how == "message":
                out[name] = message
            else:
                out |= message
    except _WrongWireType as error:
        go_name = "ObjectMeta" if name == "metadata" else name[:1].upper() + name[1:]
        raise DecodeError(f"proto: wrong wireType = {error} for field {go_name}") from None
    return out


def _joined(pairs: list[tuple[int, int | bytes]], number: int) -> bytes:
    """Contents of all fields with a number, joined to one message."""
    return b"".join([_octets(value) for other, value in pairs if other == number])


def _compile(schema: Schema) -> dict[int, Reader]:
    readers = {field.number: _reader(field) for field in schema.fields.values() if field.number}
    for embed in schema.embeds:
        readers[embed.number] = ("inline", embed.name, _value(embed.schema))
    _readers[schema.name] = readers
    return readers


def _reader(field: Field) -> Reader:
    schema = field.schema
    if schema.type in ("list", "map") and not schema.proto:
        assert schema.items is not None
        read = _value(schema.items)
        if schema.type == "map":
            return "map", field.name, read
        scalar = schema.items.type in ("integer", "boolean")
        return "packed" if scalar else "many", field.name, read
    how = "message" if schema.type == "struct" or schema.format in _MERGED else "one"
    return how, field.name, _value(schema)


def _value(schema: Schema) -> Read:
    if schema.type == "struct":
        return lambda data: _struct(schema, data)
    if schema.type == "list":
        return _wrapped_strings
    if schema.format in _FORMATS:
        return _FORMATS[schema.format]
    return _TYPES[schema.type]


class _WrongWireType(Exception):
    pass


def _octets(value: Any) -> bytes:
    if type(value) is bytes:
        return value
    raise _WrongWireType(0)


def _integer(value: Any) -> int:
    if type(value) is int:
        return value
    raise _WrongWireType(2)


def _packed(read: Read, value: Any) -> list[Any]:
    """Repeated scalars, sent one by one or packed in one field."""
    if type(value) is int:
        return [read(value)]
    items, at = [], 0
    value = _octets(value)
    while at < len(value):
        number, at = read_varint(value, at)
        items.append(read(number))
    return items


def _entry(read: Read, value: Any) -> tuple[str, Any]:
    key, item = "", None
    for number, content in fields(_octets(value), "entry"):
        if number == 1:
            key = _text(content)
        elif number == 2:
            item = read(content)
    return key, item


def _text(value: Any) -> str:
    if type(value) is bytes:
        return json_syntax.text_of(value)
    raise _WrongWireType(0)


def _base64(value: Any) -> str:
    return b64encode(_octets(value)).decode()


def _signed(bits: int) -> Read:
    top = 1 << bits - 1

    def read(value: Any) -> int:
        return ((_integer(value) + top) & ((1 << bits) - 1)) - top

    return read


def _boolean(value: Any) -> bool:
    return _integer(value) != 0


def _double(value: Any) -> float:
    if not isinstance(value, Fixed):
        raise _WrongWireType(0)
    number: float = struct.unpack("<d", value.to_bytes(8, "little"))[0]
    if number - number != 0:
        raise DecodeError(f"json: unsupported value: {number}")
    return number


def _quantity(value: Any) -> str:
    text = "0"
    for number, content in fields(_octets(value), "Quantity"):
        if number == 1:
            text = _text(content)
            if not text:
                raise DecodeError("quantities must match the regular expression")
    return text


def _timestamp(value: Any) -> tuple[int, int] | None:
    if not _octets(value):
        return None
    parts = {1: 0, 2: 0}
    for number, content in fields(value, "Timestamp"):
        if number in parts:
            parts[number] = _signed(64 if number == 1 else 32)(content)
    return parts[1], parts[2]


def _time(value: Any) -> str | None:
    """Time in whole seconds. Nanoseconds are ignored, even if they are more than a second."""
    stamp = _timestamp(value)
    return format_time(_in_range(stamp[0])) if stamp else None


def _micro_time(value: Any) -> str | None:
    """Time in microseconds. Fractions of a microsecond are cut towards zero."""
    stamp = _timestamp(value)
    if stamp is None:
        return None
    micros = int(stamp[1] / 1000)
    return format_micro_time(_in_range(stamp[0] + micros // 10**6), micros % 10**6)


def _in_range(seconds: int) -> int:
    if not -62167219200 <= seconds < 253402300800:
        raise DecodeError("Time.MarshalJSON: year outside of range [0,9999]")
    return seconds


def _int_or_string(value: Any) -> int | str:
    kind, number, text = 0, 0, ""
    for field, content in fields(_octets(value), "IntOrString"):
        if field == 1:
            kind = _integer(content)
        elif field == 2:
            number = _signed(32)(content)
        elif field == 3:
            text = _text(content)
    if kind == 1:
        return text or (SetText() if number else "")
    return number or (SetInteger() if text else 0)


def _raw(value: Any) -> Any:
    obj: Any = None
    for number, content in fields(_octets(value), "RawExtension"):
        if number == 1:
            obj = parse(_octets(content)) if content else None
    return obj


def _fields_v1(value: Any) -> Any:
    """Field set of managedFields. Text that is not JSON becomes an empty string, which is not a valid field set."""
    try:
        return _raw(value) if value != _EMPTY_RAW else ""
    except DecodeError:
        return ""


_EMPTY_RAW = b"\x0a\x00"


def _wrapped_strings(value: Any) -> list[str]:
    return [_text(content) for number, content in fields(_octets(value), "ExtraValue") if number == 1]


def _props(value: Any) -> dict[str, Any]:
    name = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
    return _struct(by_name(name), value)


def _schema_or_array(value: Any) -> Any:
    schema: Any = None
    schemas = []
    for number, content in fields(_octets(value), "JSONSchemaPropsOrArray"):
        if number == 1:
            schema = _props(content)
        elif number == 2:
            schemas.append(_props(content))
    return schemas or schema


def _schema_or_strings(value: Any) -> Any:
    schema: Any = None
    strings = []
    for number, content in fields(_octets(value), "JSONSchemaPropsOrStringArray"):
        if number == 1:
            schema = _props(content)
        elif number == 2:
            strings.append(_text(content))
    return strings or schema


def _schema_or_bool(value: Any) -> Any:
    allows, schema = False, None
    for number, content in fields(_octets(value), "JSONSchemaPropsOrBool"):
        if number == 1:
            allows = _boolean(content)
        elif number == 2:
            schema = _props(content)
    return allows if schema is None else schema


_TYPES: dict[str, Read] = {"string": _text, "boolean": _boolean, "number": _double}
_FORMATS: dict[str, Read] = {
    "int32": _signed(32),
    "int64": _signed(64),
    "byte": _base64,
    "quantity": _quantity,
    "time": _time,
    "microtime": _micro_time,
    "int-or-string": _int_or_string,
    "raw": _raw,
    "fields-v1": _fields_v1,
    "json": _raw,
    "schema-or-array": _schema_or_array,
    "schema-or-strings": _schema_or_strings,
    "schema-or-bool": _schema_or_bool,
}
_MERGED = (
    "quantity",
    "int-or-string",
    "raw",
    "fields-v1",
    "json",
    *(name for name in _FORMATS if "schema-or" in name),
)
"""Formats with messages as values. Times are messages too, but a repeated time replaces the previous one."""
