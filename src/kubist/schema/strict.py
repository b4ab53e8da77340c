"""Reading a JSON body strictly: the decoded object, and a complaint for every unknown or duplicate field.

The common body costs one parse and one decoding; only one that gives cause is read again, exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kubist.codec.errors import DecodeError
from kubist.codec.json import Literal, Repeated, parse_exact, quote, read, repeated
from kubist.schema.decode import decode
from kubist.schema.leaves import DROPPED, EMPTY, INEXACT, KEEP_EMPTY, RESPELLED, UNKNOWN, WRAP, Flags
from kubist.schema.node import Field, Schema

_LIMIT = 100
"""No more complaints than this about one body."""


@dataclass(slots=True)
class Decoded:
    object: Any
    complaints: list[str]
    """`unknown field "spec.foo"` and `duplicate field "metadata.name"`, in the order of the text."""
    empties: bool = False
    """Whether it holds empty lists that decoding again makes null. Who sent one owns the field."""
    dropped: Any = None
    """The value, if it has something empty that the object is without."""
    rewritten: Any = None
    """The value, if the object has something of it in another way."""


def decode_body(schema: Schema, body: bytes, known: tuple[Any, bool] | None = None) -> Decoded:
    """The object that a JSON body means for this schema; `known` is what `read` says of it, if it was asked."""
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


def decode_value(schema: Schema, value: Any, *asked: str) -> Decoded:
    """The same of a value already parsed, in which nothing is duplicate. `asked`: KEEP_EMPTY, and WRAP where
    whole numbers that do not fit lose their upper bits rather than being refused."""
    flags: Flags = list(asked)
    try:
        decoded = decode(schema, value, flags)
    except DecodeError:
        if WRAP not in asked:
            raise
        flags = list(asked)
        decoded = decode(schema, _wrapped(schema, value), flags)
    return _told(schema, value, decoded, flags)


def _told(schema: Schema, value: Any, decoded: Any, flags: Flags) -> Decoded:
    """What was decoded, with what decoding has noticed on the way."""
    return Decoded(
        decoded,
        complaints(schema, value) if UNKNOWN in flags else [],
        EMPTY in flags,
        value if DROPPED in flags else None,
        value if DROPPED in flags or RESPELLED in flags else None,
    )


def _wrapped(schema: Schema, value: Any) -> Any:
    """The value with numbers cut to the integers that their fields can hold."""
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
    """What is unknown or duplicate in a value."""
    report = _Report()
    report.resolve(schema, value, "")
    return list(report.found)


def _decode_exactly(schema: Schema, body: bytes) -> Decoded:
    report = _Report()
    value = report.resolve(schema, parse_exact(body, Literal, repeated), "")
    flags: Flags = [KEEP_EMPTY]
    return Decoded(
        decode(schema, value, flags),
        list(report.found),
        EMPTY in flags,
        value if DROPPED in flags else None,
        value if DROPPED in flags or RESPELLED in flags else None,
    )


class _Report:
    def __init__(self) -> None:
        self.found: dict[str, None] = {}

    def _complain(self, what: str, path: str) -> None:
        if len(self.found) < _LIMIT:
            self.found[f"{what} field {quote(path)}"] = None

    def resolve(self, schema: Schema, value: Any, path: str) -> Any:
        """The value with duplicate fields resolved, as decoding one over the other does."""
        if isinstance(value, dict):
            if schema.type == "struct":
                return self._struct(schema.fields, value, path)
            if schema.type == "map" and schema.items is not None:
                return self._map(schema.items, value, path)
        elif isinstance(value, list) and schema.type == "list" and schema.items is not None:
            items = schema.items
            return [self.resolve(items, item, f"{path}[{index}]") for index, item in enumerate(value)]
        return _plain(value) if schema.type == "any" else value

    def _struct(self, fields: dict[str, Field], value: dict[str, Any], path: str) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key, item in _pairs(value):
            at = f"{path}.{key}" if path else key
            field = fields.get(key)
            if field is None:
                self._complain("unknown", at)
                continue
            if key not in out:
                out[key] = self.resolve(field.schema, item, at)
                continue
            self._complain("duplicate", at)
            out[key] = _over(field.schema, out[key], self.resolve(field.schema, item, at), field.pointer)
        return out

    def _map(self, items: Schema, value: dict[str, Any], path: str) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key, item in _pairs(value):
            at = f"{path}.{key}" if path else key
            if key in out:
                self._complain("duplicate", at)
            out[key] = self.resolve(items, item, at)
        return out


def _plain(value: Any) -> Any:
    """A value that no schema looks into, its numbers without their text."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return float(value) if isinstance(value, Literal) else value


def _pairs(value: dict[str, Any]) -> Any:
    return value.pairs if isinstance(value, Repeated) else value.items()


def _over(schema: Schema, old: Any, new: Any, pointer: bool = False) -> Any:
    """The second value decoded over the first: structs and lists merge, null leaves what cannot be null."""
    if new is None:
        return None if pointer or schema.type in ("list", "map") else old
    if schema.type == "struct" and isinstance(old, dict) and isinstance(new, dict):
        merged = dict(old)
        for key, value in new.items():
            field = schema.fields[key]
            merged[key] = _over(field.schema, old[key], value, field.pointer) if key in old else value
        return merged
    if schema.type == "map" and isinstance(old, dict) and isinstance(new, dict):
        return old | new
    if schema.type == "list" and isinstance(old, list) and isinstance(new, list) and schema.items is not None:
        items = schema.items
        return [_over(items, old[i], value) if i < len(old) else value for i, value in enumerate(new)]
    return new
