"""Strict decoding of a JSON body: the object, and a complaint for every unknown or duplicate field.

A normal body costs one parse and one decoding. Only a body with findings is parsed again exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kubist.base.jsontext.complaints import Complaints, Place, Repeats
from kubist.base.jsontext.errors import DecodeError
from kubist.base.jsontext.json import Literal, parse_repeats, read
from kubist.model.schema.decode import converter, decode, go_type
from kubist.model.schema.leaves import (
    DROPPED,
    EMPTY,
    INEXACT,
    KEEP_EMPTY,
    RESPELLED,
    UNKNOWN,
    WRAP,
    Flags,
    WrongType,
    leaf,
)
from kubist.model.schema.mistakes import first_mistake
from kubist.model.schema.node import Field, Schema


@dataclass(slots=True)
class Decoded:
    object: Any
    complaints: list[str]
    """`unknown field "spec.foo"` and `duplicate field "metadata.name"`, in the order of the text."""
    empties: bool = False
    """Whether the object has empty lists that storing turns into null. The client that sends one owns the field."""
    dropped: Any = None
    """Parsed value, if decoding dropped an empty value from it. Otherwise None."""
    rewritten: Any = None
    """Parsed value, if decoding changed a part of it. Otherwise None."""
    inexact: bool = False
    """Whether the object has numbers whose text matters, and the value did not have it."""


def decode_body(schema: Schema, body: bytes, known: tuple[Any, bool] | None = None) -> Decoded:
    """Object of a JSON body for this schema. `known` is the result of `read(body)`, if the caller has it."""
    value, repeats = known or read(body)
    if repeats:
        return _decode_exactly(schema, body)
    flags: Flags = [KEEP_EMPTY]
    try:
        decoded = decode(schema, value, flags)
    except DecodeError:
        return _decode_exactly(schema, body)
    if len(flags) == 1:
        return Decoded(decoded, [])
    if INEXACT in flags:
        return _decode_exactly(schema, body)
    return _told(schema, value, decoded, flags)


def decode_value(schema: Schema, value: Any, *options: str) -> Decoded:
    """Object of a parsed value without duplicate keys.

    `options` may have KEEP_EMPTY, and WRAP: integers that do not fit lose their upper bits instead of being
    rejected.
    """
    flags: Flags = list(options)
    try:
        decoded = decode(schema, value, flags)
    except DecodeError:
        if WRAP not in options:
            raise
        flags = list(options)
        decoded = decode(schema, _wrapped(schema, value), flags)
    return _told(schema, value, decoded, flags)


def _told(schema: Schema, value: Any, decoded: Any, flags: Flags) -> Decoded:
    """Decoded object with the decoder's findings."""
    return Decoded(
        decoded,
        complaints(schema, value) if UNKNOWN in flags else [],
        EMPTY in flags,
        value if DROPPED in flags else None,
        value if DROPPED in flags or RESPELLED in flags else None,
        INEXACT in flags,
    )


def _wrapped(schema: Schema, value: Any) -> Any:
    """Value with integers cut to the size of their fields."""
    if isinstance(value, dict) and schema.type == "struct":
        fields = schema.fields
        return {
            key: _wrapped(fields[key].schema, item) if key in fields else item for key, item in value.items()
        }
    if schema.items is not None:
        if isinstance(value, dict):
            return {key: _wrapped(schema.items, item) for key, item in value.items()}
        if isinstance(value, list):
            return [_wrapped(schema.items, item) for item in value]
    if schema.type != "integer" or schema.int_or_string or not _whole(value):
        return value
    wide = int(value) if -(1 << 63) <= value < 1 << 63 else -(1 << 63)
    return (wide + (1 << 31)) % (1 << 32) - (1 << 31) if schema.format == "int32" else wide


def _whole(value: Any) -> bool:
    return type(value) is int or (isinstance(value, float) and value.is_integer())


def complaints(schema: Schema, value: Any) -> list[str]:
    """Complaints about unknown fields of a value without duplicate keys."""
    return resolve(schema, value, Repeats())[1]


def resolve(schema: Schema, value: Any, repeats: Repeats) -> tuple[Any, list[str]]:
    """Value without unknown fields, with duplicate fields merged as successive decoding does, and the complaints."""
    report = _Report(repeats)
    try:
        return report.resolve(schema, value, Place()), report.complaints.messages
    except WrongType as error:
        raise DecodeError(str(error)) from None


def _decode_exactly(schema: Schema, body: bytes) -> Decoded:
    parsed, repeats = parse_repeats(body, Literal)
    flags: Flags = [KEEP_EMPTY]
    try:
        value, messages = resolve(schema, parsed, repeats)
        decoded = decode(schema, value, flags)
    except DecodeError as error:
        raise first_mistake(schema, parsed, repeats) or error from None
    return Decoded(
        decoded,
        messages,
        EMPTY in flags,
        value if DROPPED in flags else None,
        value if DROPPED in flags or RESPELLED in flags else None,
    )


class _Report:
    def __init__(self, repeats: Repeats) -> None:
        self.repeats = repeats
        self.complaints = Complaints()

    def resolve(self, schema: Schema, value: Any, place: Place) -> Any:
        if isinstance(value, dict):
            if schema.type == "struct":
                return self._struct(schema, value, place)
            if schema.type == "map" and schema.items is not None:
                return self._map(schema.items, value, place)
        elif isinstance(value, list) and schema.type == "list" and schema.items is not None:
            return self._list(schema.items, value, place)
        return _plain(value) if schema.type == "any" else value

    def _struct(self, schema: Schema, value: dict[str, Any], place: Place) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key, item in self.repeats.pairs(value):
            field = schema.fields.get(key)
            if field is None:
                self.complaints.add("unknown", place.at(key))
                continue
            if key in out:
                self.complaints.add("duplicate", place.at(key))
            try:
                item = self._item(field.schema, item, place, key)
                out[key] = _over(field.schema, out[key], item, field.pointer) if key in out else item
            except WrongType as error:
                raise _within(error, schema, field) from None
        return out

    def _map(self, items: Schema, value: dict[str, Any], place: Place) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key, item in self.repeats.pairs(value):
            if key in out:
                self.complaints.add("duplicate", place.at(key))
                _check_lost(items, out[key])
            out[key] = self._item(items, item, place, key)
        return out

    def _list(self, items: Schema, value: list[Any], place: Place) -> list[Any]:
        return [self._item(items, item, place, index) for index, item in enumerate(value)]

    def _item(self, items: Schema, item: Any, place: Place, key: str | int) -> Any:
        if isinstance(item, (dict, list)):
            return self.resolve(items, item, place.at(key))
        return _plain(item) if items.type == "any" else item


def _plain(value: Any) -> Any:
    """Value without a schema, with plain floats instead of `Literal`s."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return float(value) if isinstance(value, Literal) else value


def _over(schema: Schema, old: Any, new: Any, pointer: bool = False) -> Any:
    """Second value decoded over the first, which is modified.

    Structs and lists merge. Null leaves a value that cannot be null. A replaced value must have had the right
    type, too.
    """
    if new is None:
        if not pointer and schema.type not in ("list", "map"):
            return old
        _check_lost(schema, old)
        return None
    if schema.type == "struct" and isinstance(old, dict) and isinstance(new, dict):
        for key, value in new.items():
            field = schema.fields[key]
            try:
                old[key] = _over(field.schema, old[key], value, field.pointer) if key in old else value
            except WrongType as error:
                raise _within(error, schema, field) from None
        return old
    if schema.items is not None and schema.type == "map" and isinstance(old, dict) and isinstance(new, dict):
        for key, value in new.items():
            if key in old:
                _check_lost(schema.items, old[key])
            old[key] = value
        return old
    if schema.items is not None and schema.type == "list" and isinstance(old, list) and isinstance(new, list):
        _check_lost(schema, old[len(new) :])
        items = schema.items
        return [_over(items, old[i], value) if i < len(old) else value for i, value in enumerate(new)]
    _check_lost(schema, old)
    return new


def _check_lost(schema: Schema, value: Any) -> None:
    """Rejects a value of the wrong type although another value replaces it."""
    if value is None or (type(value) is str and schema.type == "string" and not schema.format):
        return
    if schema.type == "struct":
        converter(schema)(value, [])
    elif schema.items is None:
        leaf(schema, go_type, converter)(value, [])
    elif type(value) is not (dict if schema.type == "map" else list):
        raise WrongType(value, go_type(schema))
    else:
        for item in value.values() if isinstance(value, dict) else value:
            _check_lost(schema.items, item)


def _within(error: WrongType, schema: Schema, field: Field) -> WrongType:
    key = f"{field.embedded}.{field.name}" if field.embedded else field.name
    error.within(key, schema.name.rpartition(".")[2])
    return error
