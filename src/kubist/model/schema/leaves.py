"""Values other than structs: type check and canonical form.

A `Convert` takes a value, which may be null, and the flags of the decoding. Null becomes the zero value.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64encode
from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any

from kubist.base.jsontext.errors import DecodeError
from kubist.base.jsontext.json import Literal, json_type
from kubist.model.meta.numerals import written
from kubist.model.meta.quantity import FORMAT_WRONG, canonical_quantity
from kubist.model.meta.times import canonical_micro_time, canonical_time
from kubist.model.schema.catalog import by_name
from kubist.model.schema.node import Schema

Flags = list[str]
Convert = Callable[[Any, Flags], Any]
UNKNOWN = "unknown"
INEXACT = "inexact"
KEEP_EMPTY = "keep empty"
WRAP = "wrap"
EMPTY = "empty"
DROPPED = "dropped"
RESPELLED = "respelled"

_KINDS = {dict: "map", list: "slice", str: "string", bool: "bool", int: "int64"}
_CONVERTED = {
    "string": ("int64",),
    "int32": ("int64", "float64"),
    "int64": ("int64", "float64"),
    "float64": ("int64", "float64"),
}


class WrongType(Exception):
    """Value of the wrong type. On its way up it collects the path of fields."""

    def __init__(self, value: Any, go_type: str, *, struct: bool = False, own: bool = False) -> None:
        """`struct`: the expected type is a struct. `own`: the expected type has its own UnmarshalJSON in Go."""
        word = json_type(value)
        self.source = _KINDS.get(type(value), "float64")
        self.expected_kind = "struct" if struct else ""
        self.own = own
        if word == "number" and go_type.startswith(("int", "float")):
            word = f"number {value.text if isinstance(value, Literal) else written(value)}"
        self.word = word
        self.go_type = go_type
        self.path: list[str] = []
        self.struct = ""

    def within(self, field: str, struct: str) -> None:
        if field:
            self.struct = self.struct or struct
            self.path.append(field)

    def restored(self) -> str:
        """Message for a strategic merge patch, whose result was never JSON."""
        go, source = self.go_type, self.source
        if self.own:
            return f"json: cannot unmarshal {self.word} into Go value of type {go}"
        if self.expected_kind == "struct":
            return f"cannot restore struct from: {source}"
        if go.startswith(("map[", "[]")):
            return f"cannot restore {'map' if go[0] == 'm' else 'slice'} from {source}"
        target = go if go in ("bool", "int32", "int64", "float64") else "string"
        if source in _CONVERTED.get(target, ()):
            return f"cannot convert {source} to {target}"
        return f"unrecognized type: {target}"

    def __str__(self) -> str:
        where = f"struct field {self.struct}.{'.'.join(reversed(self.path))}" if self.struct else "value"
        return f"json: cannot unmarshal {self.word} into Go {where} of type {self.go_type}"


def leaf(schema: Schema, go_type: Callable[[Schema], str], struct: Callable[[Schema], Convert]) -> Convert:
    """Decoder for a schema that is not a struct, nor a list or map of structs."""
    if schema.type in ("list", "map"):
        assert schema.items is not None
        if schema.items.type == "string" and not schema.items.format:
            strings = _strings if schema.type == "list" else _string_map
            return partial(strings, go_type(schema), go_type(schema.items))
        inner = leaf(schema.items, go_type, struct)
        if schema.items.format == "byte":
            inner = partial(_or_zero, "", inner)
        elif schema.items.type == "list":
            inner = partial(_or_zero, [], inner)
        many = _list_of if schema.type == "list" else _map_of
        return partial(many, inner, go_type(schema))
    if schema.format in _SCHEMA_PARTS:
        return partial(_SCHEMA_PARTS[schema.format], lambda: struct(_schema_props()))
    if schema.format in _FORMATS:
        return _FORMATS[schema.format]
    if schema.type == "integer":
        return partial(_integer, 31 if schema.format == "int32" else 63, go_type(schema))
    return partial(_scalar, *_SCALARS[schema.type], go_type(schema)) if schema.type in _SCALARS else _any


def _schema_props() -> Schema:
    return by_name("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps")


def _strings(go: str, item: str, value: Any, flags: Flags) -> Any:
    if type(value) is list:
        for text in value:
            if type(text) is not str:
                return [_scalar(str, "", item, text, flags) for text in value]
        return value
    if value is None:
        return None
    raise WrongType(value, go)


def _string_map(go: str, item: str, value: Any, flags: Flags) -> Any:
    if type(value) is dict:
        for text in value.values():
            if type(text) is not str:
                return {key: _scalar(str, "", item, value[key], flags) for key in sorted(value)}
        return dict(sorted(value.items())) if len(value) > 1 else value
    if value is None:
        return None
    raise WrongType(value, go)


def _list_of(inner: Convert, go: str, value: Any, flags: Flags) -> Any:
    if type(value) is list:
        return [inner(item, flags) for item in value]
    if value is None:
        return None
    raise WrongType(value, go)


def _map_of(inner: Convert, go: str, value: Any, flags: Flags) -> Any:
    if type(value) is dict:
        return {key: inner(value[key], flags) for key in sorted(value)}
    if value is None:
        return None
    raise WrongType(value, go)


def _or_zero(zero: Any, inner: Convert, value: Any, flags: Flags) -> Any:
    """Replaces null inside a map or list by its zero value, because protobuf storage loses it."""
    return copy(zero) if value is None else inner(value, flags)


def _scalar(type_: type, zero: Any, go: str, value: Any, _flags: Flags) -> Any:
    if type(value) is type_:
        return value
    if value is None:
        return zero
    raise WrongType(value, go)


def _integer(bits: int, go: str, value: Any, _flags: Flags) -> Any:
    if type(value) is int and -(1 << bits) <= value < 1 << bits:
        return value
    if value is None:
        return 0
    raise WrongType(value, go)


def _any(value: Any, _flags: Flags) -> Any:
    return value


def _number(value: Any, _flags: Flags) -> Any:
    if type(value) is int:
        return value
    if isinstance(value, float):
        if value - value != 0:
            raise WrongType(value, "float64")
        return int(value) if value.is_integer() and abs(value) < 1 << 63 else float(value)
    if value is None:
        return 0
    raise WrongType(value, "float64")


class SetText(str):
    """Empty string that counts as set: an IntOrString in protobuf with a nonzero unused integer."""

    def __bool__(self) -> bool:
        return True


class SetInteger(int):
    """Zero that counts as set: an IntOrString in protobuf with a nonempty unused string."""

    def __bool__(self) -> bool:
        return True


def _int_or_string(value: Any, flags: Flags) -> Any:
    if isinstance(value, (str, SetInteger)):
        return value
    try:
        return _integer(31, "int32", value, flags)
    except WrongType as error:
        error.own = True
        raise


def _quantity(value: Any, flags: Flags) -> str:
    if type(value) is str:
        text = value
    elif value is None:
        flags.append(RESPELLED)
        return "0"
    elif type(value) is int:
        text = str(value)
    elif isinstance(value, Literal):
        text = value.text
    elif type(value) is float:
        flags.append(INEXACT)
        text = written(value)
    else:
        raise DecodeError(FORMAT_WRONG)
    try:
        canonical = canonical_quantity(text.strip())
    except ValueError as error:
        raise DecodeError(str(error)) from None
    if canonical != text:
        flags.append(RESPELLED)
    return canonical


def _time(canonical: Callable[[str], str | None], value: Any, _flags: Flags) -> str | None:
    if type(value) is str:
        try:
            return canonical(value)
        except ValueError as error:
            raise DecodeError(str(error)) from None
    if value is None:
        return None
    raise WrongType(value, "string", own=True)


_LINE_BREAKS = str.maketrans("", "", "\r\n")


def _bytes(value: Any, _flags: Flags) -> str | None:
    if type(value) is str:
        try:
            data = binascii.a2b_base64(value, strict_mode=True)
        except ValueError:
            data = _base64(value)
        return b64encode(data).decode()
    if value is None:
        return None
    if type(value) is list:
        octets = bytearray()
        for item in value:
            if item is not None and not (type(item) is int and 0 <= item <= 255):
                raise WrongType(item, "uint8")
            octets.append(item or 0)
        return b64encode(octets).decode()
    raise WrongType(value, "[]uint8")


_QUANTUMS = re.compile(r"(?:[A-Za-z0-9+/]{4})*")


def _base64(text: str) -> bytes:
    """Bytes of base64 with line breaks. The error message has the position, with line breaks counted."""
    plain = text.translate(_LINE_BREAKS)
    try:
        return binascii.a2b_base64(plain, strict_mode=True)
    except ValueError:
        match = _QUANTUMS.match(plain)
        at = match.end() if match else 0
        rest = plain[at : at + 4]
        valid = re.match(r"[A-Za-z0-9+/]*", rest)
        length = valid.end() if valid else 0
        if re.fullmatch(r"[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=", rest):
            at += 4
        elif length == len(rest):
            pass
        elif length == 2 and rest[2:] == "=":
            at += 3
        else:
            at += length
        positions = [index for index, char in enumerate(text) if char not in "\r\n"]
        where = positions[at] if at < len(positions) else len(text)
        raise DecodeError(f"illegal base64 data at input byte {where}") from None


def _or_array(props: Callable[[], Convert], value: Any, _flags: Flags) -> Any:
    if type(value) is dict:
        return props()(value, [])
    return [props()(item, []) for item in value] or None if type(value) is list else None


def _or_strings(props: Callable[[], Convert], value: Any, flags: Flags) -> Any:
    if type(value) is dict:
        return props()(value, [])
    return _strings("[]string", "string", value, flags) or None if type(value) is list else None


def _or_bool(props: Callable[[], Convert], value: Any, _flags: Flags) -> Any:
    if type(value) is dict:
        return props()(value, [])
    if type(value) is bool:
        return value
    raise DecodeError("boolean or JSON schema expected")


_SCALARS: dict[str, tuple[type, Any]] = {"string": (str, ""), "boolean": (bool, False)}
_FORMATS: dict[str, Convert] = {
    "quantity": _quantity,
    "time": partial(_time, canonical_time),
    "microtime": partial(_time, canonical_micro_time),
    "byte": _bytes,
    "int-or-string": _int_or_string,
    "double": _number,
}
_SCHEMA_PARTS: dict[str, Callable[..., Any]] = {
    "schema-or-array": _or_array,
    "schema-or-strings": _or_strings,
    "schema-or-bool": _or_bool,
}
