"""Type conversion functions (int, string, timestamp, …), the type of a value, and the conversion of JSON values to CEL
values by type.

Objects are not converted as a whole: a field is converted when it is selected.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import Any

from kubist.model.cel.errors import EvaluationError, NoSuchOverload
from kubist.model.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    map_of,
    optional_of,
    type_of,
)
from kubist.model.cel.values import (
    Duration,
    MapList,
    Optional,
    SetList,
    Timestamp,
    Uint,
    checked_int,
    checked_uint,
    in_range,
    parse_date,
    parse_duration,
    parse_timestamp,
)
from kubist.model.meta.numerals import decimal, go_float


def _unconvertible(target: str) -> EvaluationError:
    return EvaluationError(f"type conversion error from 'string' to '{target}'")


def to_int(value: Any) -> int:
    match value:
        case bool():
            raise NoSuchOverload("int")
        case int():
            return checked_int(int(value))
        case float():
            if value != value or not -9.223372036854775e18 < value < 9.223372036854775807e18:
                raise EvaluationError("integer overflow")
            return int(value)
        case str():
            if not re.fullmatch(r"[+-]?\d+", value, re.ASCII):
                raise _unconvertible("int")
            return checked_int(decimal(value))
        case Timestamp():
            return value.nanoseconds // 10**9
        case Duration():
            return value.nanoseconds
    raise NoSuchOverload("int")


def to_uint(value: Any) -> Uint:
    match value:
        case bool():
            raise NoSuchOverload("uint")
        case int():
            return checked_uint(int(value))
        case float():
            if value != value or not 0 <= value < 1.8446744073709552e19:
                raise EvaluationError("unsigned integer overflow")
            return Uint(int(value))
        case str():
            if not re.fullmatch(r"\d+", value, re.ASCII):
                raise _unconvertible("uint")
            return checked_uint(decimal(value))
    raise NoSuchOverload("uint")


def to_double(value: Any) -> float:
    if isinstance(value, bool):
        raise NoSuchOverload("double")
    if isinstance(value, (int, float)):
        return float(value)
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            raise _unconvertible("double") from None
    raise NoSuchOverload("double")


def to_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        if value in ("1", "t", "T", "TRUE", "true", "True"):
            return True
        if value in ("0", "f", "F", "FALSE", "false", "False"):
            return False
        raise _unconvertible("bool")
    raise NoSuchOverload("bool")


def to_string(value: Any) -> str:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(int(value))
        case float():
            return go_float(value)
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None
        case Timestamp() | Duration():
            return str(value)
    if hasattr(value, "cel_string"):
        return str(value.cel_string())
    raise NoSuchOverload("string")


def to_bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    raise NoSuchOverload("bytes")


def to_timestamp(value: Any) -> Timestamp:
    if isinstance(value, Timestamp):
        return value
    if isinstance(value, str):
        try:
            return parse_timestamp(value)
        except EvaluationError:
            raise _unconvertible("google.protobuf.Timestamp") from None
    if isinstance(value, int) and not isinstance(value, bool):
        return in_range(Timestamp(value * 10**9))
    raise NoSuchOverload("timestamp")


def to_duration(value: Any) -> Duration:
    if isinstance(value, Duration):
        return value
    if isinstance(value, str):
        try:
            return parse_duration(value)
        except EvaluationError:
            raise _unconvertible("google.protobuf.Duration") from None
    if isinstance(value, int) and not isinstance(value, bool):
        return Duration(value)
    raise NoSuchOverload("duration")


def type_name(value: Any) -> str:
    return str(value_type(value))


def value_type(value: Any) -> Type:
    match value:
        case None:
            return NULL
        case bool():
            return BOOL
        case Uint():
            return UINT
        case int():
            return INT
        case float():
            return DOUBLE
        case str():
            return STRING
        case bytes():
            return BYTES
        case list():
            return list_of(DYN)
        case dict():
            return map_of(DYN, DYN)
        case Timestamp():
            return TIMESTAMP
        case Duration():
            return DURATION
        case Optional():
            return optional_of(DYN)
        case Type():
            return type_of(DYN)
    cel_type = getattr(value, "cel_type", None)
    return cel_type if isinstance(cel_type, Type) else DYN


Convert = Callable[[Any], Any]


def converter(type_: Type | None) -> Convert | None:
    """Function that converts a JSON value to a CEL value of this type; None if no conversion is needed."""
    if type_ is None:
        return None
    props = type_.props or {}
    match type_.kind:
        case "double":
            return lambda value: float(value) if value.__class__ is int else value
        case "int":
            return lambda value: int(value) if value.__class__ is float else value
        case "timestamp":
            parse = parse_date if props.get("format") == "date" else parse_timestamp
            return lambda value: parse(value) if isinstance(value, str) else value
        case "duration":
            return lambda value: parse_duration(value) if isinstance(value, str) else value
        case "bytes":
            return lambda value: _decoded(value) if isinstance(value, str) else value
        case "list":
            return _list(type_, props)
        case "map":
            inner = converter(type_.params[1])
            if inner is None:
                return None
            return lambda value: (
                {key: inner(item) for key, item in value.items()} if isinstance(value, dict) else value
            )
    return None


def _list(type_: Type, props: dict[str, Any]) -> Convert | None:
    inner = converter(type_.params[0])
    kind = props.get("x-kubernetes-list-type")
    keys = tuple(props.get("x-kubernetes-list-map-keys") or ())

    def convert(value: Any) -> Any:
        if not isinstance(value, list):
            return value
        items = [inner(item) for item in value] if inner is not None else value
        if kind == "set":
            return SetList(items)
        return MapList(items, keys) if kind == "map" else items

    return convert if inner is not None or kind in ("set", "map") else None


def _decoded(value: str) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise EvaluationError("invalid base64") from None
