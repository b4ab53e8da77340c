"""JSON bodies: parsing and encoding. Detection of duplicate keys costs almost nothing if there are none.

Text that orjson rejects but Go accepts (invalid UTF-8, lone surrogates) is parsed by the slower `json`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NoReturn

import orjson

from kubist.base.jsontext import syntax as json_syntax
from kubist.base.jsontext.complaints import Repeats
from kubist.base.jsontext.errors import DecodeError

MAX_DEPTH = 240
"""Nesting limit: deeper than any object. orjson encodes 254 levels; the server adds some for managedFields, reviews and
audit events."""


class BeyondRange(DecodeError):
    """Number that does not fit in a float."""


NO_KIND = "couldn't get version/kind; json parse error"
_TYPE_META = (
    r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
)


class Literal(float):
    """Number with its original text."""

    text: str

    def __new__(cls, text: str) -> Literal:
        number = super().__new__(cls, _finite(text))
        number.text = text
        return number


class Spelled(Literal):
    """Any number with its original text. A number that no float can hold is infinite."""

    def __new__(cls, text: str) -> Spelled:
        number = float.__new__(cls, text)
        number.text = text
        return number


def parse(body: bytes) -> Any:
    """Value of a body. The last of duplicate keys wins."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return parse_exact(body, _finite)
    if body.count(b"{") + body.count(b"[") > MAX_DEPTH:
        check_depth(value)
    return value


def read(body: bytes) -> tuple[Any, bool]:
    """Value of a body, and whether it may have duplicate keys. False is certain."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        value = parse_exact(body, _finite)
    return value, may_repeat(body, value)


def read_repeats(body: bytes) -> tuple[Any, Repeats]:
    """Value of a body, and its objects with duplicate keys."""
    value, repeats = read(body)
    return parse_repeats(body) if repeats else (value, Repeats())


def parse_repeats(body: bytes, number: Callable[[str], Any] | None = None) -> tuple[Any, Repeats]:
    """Value of a body that may have duplicate keys, and its objects with duplicate keys."""
    repeats = Repeats()
    return parse_exact(body, number or _finite, repeats.made), repeats


def may_repeat(body: bytes, value: Any) -> bool:
    """Whether the text may have more keys than its value. False is certain.

    Every key is followed by a colon. The strings of the text have as many colons as those of the value, unless
    a colon is escaped.
    """
    if b"\\" in body and b"\\u003a" in body.lower():
        return True
    try:
        return body.count(b":") != orjson.dumps(_wrapped(value)).count(b":")
    except orjson.JSONEncodeError:
        raise DecodeError("exceeded max depth") from None


def parse_exact(
    body: bytes, number: Callable[[str], Any] = Literal, pairs: Callable[[list[tuple[str, Any]]], Any] = dict
) -> Any:
    """Slow parser: the caller creates numbers and objects. Accepts the encoding errors that Go accepts, with
    Go's error messages."""
    text = json_syntax.replace_surrogates(json_syntax.text_of(body))
    try:
        value = json.loads(
            text,
            object_pairs_hook=pairs,
            parse_float=number,
            parse_int=lambda digits: _integer(digits, number),
            parse_constant=_no_constant,
        )
    except BeyondRange:
        # Go checks the syntax of the whole text before it reads any number.
        parse_exact(body, float)
        raise
    except (ValueError, RecursionError) as error:
        raise DecodeError(json_syntax.complaint(body)) from error
    if _is_too_deep(value):
        # Go has a different message for texts that its parser rejects. Python 3.14 and later parse some of them.
        raise DecodeError(json_syntax.complaint(body))
    return value


def _wrapped(value: Any) -> Any:
    """The value in nested lists, as many as orjson's depth limit exceeds MAX_DEPTH."""
    return [[[[[[[[[[[[[[value]]]]]]]]]]]]]]


def check_depth(value: Any) -> None:
    """Rejects a value that is nested deeper than MAX_DEPTH."""
    if _is_too_deep(value):
        raise DecodeError("exceeded max depth")


def _is_too_deep(value: Any) -> bool:
    try:
        orjson.dumps(_wrapped(value), default=float)
    except orjson.JSONEncodeError:
        return True
    return False


def type_meta(value: Any) -> tuple[str, str]:
    """apiVersion and kind of a body. Empty if absent."""
    if value is None:
        return "", ""
    if not isinstance(value, dict):
        raise DecodeError(
            f"{NO_KIND}: json: cannot unmarshal {json_type(value)} into Go value of type {_TYPE_META}"
        )
    values = []
    for key in ("apiVersion", "kind"):
        text = value.get(key)
        if text is not None and not isinstance(text, str):
            where = f"Go struct field .{key} of type string"
            raise DecodeError(f"{NO_KIND}: json: cannot unmarshal {json_type(text)} into {where}")
        values.append(text or "")
    return values[0], values[1]


_JSON_TYPES = {
    dict: "object",
    list: "array",
    tuple: "array",
    str: "string",
    bool: "bool",
    type(None): "null",
}


def json_type(value: Any) -> str:
    """JSON type of a value, as the errors of Go's decoder name it."""
    return _JSON_TYPES.get(type(value), "number")


def dumps(value: Any) -> bytes:
    return orjson.dumps(value)


def _integer(digits: str, number: Callable[[str], Any]) -> Any:
    if len(digits) <= 20:
        value = int(digits)
        if -(1 << 63) <= value < 1 << 63:
            return value
    return number(digits)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _finite(text: str) -> float:
    number = float(text)
    if number - number != 0:
        raise BeyondRange(f"json: cannot unmarshal number {text} into Go value of type float64")
    return number
