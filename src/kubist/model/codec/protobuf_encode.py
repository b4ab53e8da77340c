"""Protobuf encoder: objects to messages, byte for byte as the reference's generated code.

Fields are in ascending order of their numbers. Scalars and structs that are not pointers are always written;
lists and pointers only if set. Each struct is compiled to a function on first use.
"""

from __future__ import annotations

import struct
from base64 import b64decode
from collections.abc import Callable
from functools import partial
from typing import Any

from kubist.base.caching import bounded_cache
from kubist.base.jsontext.json import dumps
from kubist.model.codec.protobuf_wire import BYTES, FIXED64, SMALL, VARINT, delimited, tag, varint
from kubist.model.meta.durations import parse as parse_duration
from kubist.model.meta.times import is_zero, parse_micro_time, parse_time
from kubist.model.schema.catalog import by_name
from kubist.model.schema.node import Field, Schema

Encode = Callable[[Any], bytes]

_compiled: dict[str, Encode] = {}
"""Compiled encoders of the process by OpenAPI name."""


def encode(schema: Schema, object: dict[str, Any]) -> bytes:
    """Message of a canonical object. Kind and apiVersion belong to the envelope."""
    return _encoder(schema)(object)


def _encoder(schema: Schema) -> Encode:
    encoder = _compiled.get(schema.name)
    return encoder if encoder is not None else _compile(schema)


def _compile(schema: Schema) -> Encode:
    source = _Source(schema)
    namespace = source.namespace
    exec(compile(source.text(), f"<encode {schema.name}>", "exec"), namespace)
    compiled: Encode = namespace["encode_struct"]
    _compiled[schema.name] = compiled
    return compiled


class _Source:
    """Source code of the encoder of one struct. `o` is the object, `a` appends to the parts of the message."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.namespace: dict[str, Any] = {"varint": varint, "SMALL": SMALL, "EMPTY": {}}

    def text(self) -> str:
        lines = ["def encode_struct(o):", " p = []; a = p.append"]
        numbered = [field for field in self.schema.fields.values() if field.number]
        for field in sorted((*numbered, *self.schema.embeds), key=lambda field: field.number):
            lines += [" " + line for line in self._field(field)]
        lines.append(" return b''.join(p)")
        return "\n".join(lines)

    def _field(self, field: Field) -> list[str]:
        schema = field.schema
        if field in self.schema.embeds:
            return self._delimited(repr(tag(field.number, BYTES)), f"{self._struct(schema)}(o)")
        present = [f"x = o.get({field.name!r})"]
        if schema.type in ("list", "map") and not schema.proto:
            return [*present, "if x:", *(" " + line for line in self._many(field))]
        wire_type, value, zero = self._value(schema)
        head = repr(tag(field.number, wire_type))
        body = self._delimited(head, value) if wire_type == BYTES else [f"a({head}); a({value})"]
        lines = [*present, "if x is not None:", *(" " + line for line in body)]
        if not field.pointer and zero is not None:
            lines.append(f"else: a({self._constant(zero, field.number, wire_type)})")
        return lines

    def _constant(self, zero: str, number: int, wire_type: int) -> str:
        """Expression for an absent field that is not a pointer."""
        head = repr(tag(number, wire_type))
        if not zero.startswith("S_"):
            return repr(eval(head) + eval(zero))
        name = f"Z{number}"
        self.namespace[name] = lambda: delimited(tag(number, wire_type), self.namespace[zero]({}))
        return f"{name}()"

    def _many(self, field: Field) -> list[str]:
        schema = field.schema
        items = schema.items
        assert items is not None
        wire_type, value, _ = self._value(items)
        if schema.type == "list":
            head = repr(tag(field.number, wire_type))
            body = self._delimited(head, value) if wire_type == BYTES else [f"a({head}); a({value})"]
            return ["for x in x:", *(" " + line for line in body)]
        assert wire_type == BYTES
        return [
            "for k in sorted(x):",
            " e = k.encode(); e = b'\\n' + varint(len(e)) + e",
            f" x_ = x; x = x[k]; y = {value}; x = x_",
            " e += b'\\x12' + varint(len(y)) + y",
            f" a({tag(field.number, BYTES)!r}); a(varint(len(e))); a(e)",
        ]

    def _delimited(self, head: str, value: str) -> list[str]:
        return [
            f"y = {value}; n = len(y)",
            f"a({head}); a(SMALL[n] if n < 16384 else varint(n)); a(y)",
        ]

    def _value(self, schema: Schema) -> tuple[int, str, str | None]:
        """Wire type, expression of the encoded `x`, and content for an absent value."""
        if schema.type == "struct":
            name = self._struct(schema)
            return BYTES, f"{name}(x)", name
        if schema.type in ("list", "map"):
            return BYTES, f"{self._name(_wrapped_strings)}(x)", None
        if schema.format in _MESSAGES:
            convert, zero = _MESSAGES[schema.format]
            return BYTES, f"{self._name(convert)}(x)", repr(zero)
        match schema.type, schema.format:
            case "string", "byte":
                return BYTES, f"{self._name(b64decode)}(x)", None
            case "string", _:
                return BYTES, "x.encode()", "b'\\x00'"
            case "boolean", _:
                return VARINT, "b'\\1' if x else b'\\0'", "b'\\x00'"
            case "integer", _:
                return VARINT, "SMALL[x] if 0 <= x < 16384 else varint(x)", "b'\\x00'"
            case "number", _:
                return FIXED64, f"{self._name(partial(struct.pack, '<d'))}(x)", "bytes(8)"
        raise TypeError(f"{schema} has no protobuf form")

    def _struct(self, schema: Schema) -> str:
        """Name of the encoder of another struct, which is compiled on its first call."""
        name = "S_" + "".join(char if char.isalnum() else "_" for char in schema.name)
        if name not in self.namespace:

            def first(value: Any) -> bytes:
                self.namespace[name] = convert = _encoder(schema)
                return convert(value)

            self.namespace[name] = _compiled.get(schema.name, first)
        return name

    def _name(self, function: Callable[..., Any]) -> str:
        name = f"f{len(self.namespace)}"
        self.namespace[name] = function
        return name


@bounded_cache(entries=4096, key_length=64)
def _quantity(text: str) -> bytes:
    return delimited(b"\x0a", text.encode())


@bounded_cache(entries=4096, key_length=64)
def _time(text: str | None) -> bytes:
    if text is None or is_zero(seconds := parse_time(text)):
        return b""
    return b"\x08" + varint(seconds) + b"\x10\x00"


@bounded_cache(entries=4096, key_length=64)
def _micro_time(text: str | None) -> bytes:
    if text is None:
        return b""
    seconds, micros = parse_micro_time(text)
    return b"\x08" + varint(seconds) + b"\x10" + varint(micros * 1000)


def _duration(text: str) -> bytes:
    return b"\x08" + varint(parse_duration(text))


def _int_or_string(value: int | str) -> bytes:
    if isinstance(value, str):
        return b"\x08\x01\x10\x00" + delimited(b"\x1a", value.encode())
    return b"\x08\x00\x10" + varint(value) + b"\x1a\x00"


def _raw(value: Any) -> bytes:
    return delimited(b"\x0a", dumps(value)) if value is not None else b""


def _wrapped_strings(values: list[str]) -> bytes:
    return b"".join(delimited(b"\x0a", value.encode()) for value in values)


def _props(value: Any) -> bytes:
    return encode(by_name("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"), value)


def _schema_or_array(value: Any) -> bytes:
    if isinstance(value, list):
        return b"".join(delimited(b"\x12", _props(item)) for item in value)
    return delimited(b"\x0a", _props(value))


def _schema_or_strings(value: Any) -> bytes:
    if isinstance(value, list):
        return b"".join(delimited(b"\x12", item.encode()) for item in value)
    return delimited(b"\x0a", _props(value))


def _schema_or_bool(value: Any) -> bytes:
    if isinstance(value, bool):
        return b"\x08\x01" if value else b"\x08\x00"
    return b"\x08\x01" + delimited(b"\x12", _props(value))


_MESSAGES: dict[str, tuple[Callable[[Any], bytes], bytes]] = {
    "quantity": (_quantity, b"\x03\x0a\x010"),
    "time": (_time, b"\x00"),
    "microtime": (_micro_time, b"\x00"),
    "duration": (_duration, b"\x02\x08\x00"),
    "int-or-string": (_int_or_string, b"\x06" + _int_or_string(0)),
    "raw": (_raw, b"\x00"),
    "fields-v1": (_raw, b"\x00"),
    "json": (_raw, b"\x00"),
    "schema-or-array": (_schema_or_array, b"\x00"),
    "schema-or-strings": (_schema_or_strings, b"\x00"),
    "schema-or-bool": (_schema_or_bool, b"\x00"),
}
"""Encoder, and length and content of the zero value, by format."""
