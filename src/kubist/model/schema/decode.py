"""Decoder: turns a parsed value into the canonical object that the reference would return, or raises
`DecodeError`.

Each struct is compiled to a Python function on first use. Fields are in declared order, empty values are
dropped, zero values are kept if the type keeps them, quantities and times are canonical. `model/schema/strict.py`
reports unknown fields.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubist.base.jsontext.errors import DecodeError
from kubist.model.schema.leaves import (
    DROPPED,
    EMPTY,
    KEEP_EMPTY,
    RESPELLED,
    UNKNOWN,
    Convert,
    Flags,
    WrongType,
    leaf,
)
from kubist.model.schema.node import Field, Schema

_compiled: dict[str, Convert] = {}
_compiled_lists: dict[str, Convert] = {}
"""Compiled decoders of the process by OpenAPI name, for a struct and for a list of structs. Nodes of one name share
their fields."""


PART = 5
"""Number of optional fields that the decoder looks up before it checks whether any key is left."""


class Mistyped(DecodeError):
    """Value of the wrong type for its field."""

    def __init__(self, error: WrongType) -> None:
        super().__init__(str(error))
        self.error = error


def restored(error: DecodeError) -> str:
    """Decoding error in the words of the reference's converter for unstructured values, which were never JSON."""
    if isinstance(error, Mistyped):
        return error.error.restored()
    message = str(error)
    return f"error decoding from json: {message}" if message.startswith("illegal base64 data") else message


def decode(schema: Schema, value: Any, flags: Flags | None = None) -> Any:
    """Canonical object of a value. The result shares parts with it. A custom resource is returned unchanged.

    `flags` collects findings: `UNKNOWN` fields and `INEXACT` numbers whose text matters. If it contains
    `KEEP_EMPTY`, lists that storage turns into null are kept and flagged `EMPTY`. `DROPPED` flags empty values
    that are not kept.
    """
    if not schema.name:
        return value
    try:
        return converter(schema)(value, flags if flags is not None else [])
    except WrongType as error:
        raise Mistyped(error) from None
    except RecursionError:
        raise DecodeError("exceeded max depth") from None


def converter(schema: Schema) -> Convert:
    """Decoder of a struct of the catalog. Compiled on first use."""
    convert = _compiled.get(schema.name)
    return convert if convert is not None else compile_struct(schema)


def compile_struct(schema: Schema) -> Convert:
    source = _Source(schema)
    compiled = _compiled[schema.name] = source.compiled("decode_struct", source.of_struct())
    return compiled


def list_converter(schema: Schema) -> Convert:
    """Decoder of a list of structs. It needs no function call per item."""
    convert = _compiled_lists.get(schema.name)
    if convert is None:
        source = _Source(schema)
        convert = _compiled_lists[schema.name] = source.compiled("decode_list", source.of_list())
    return convert


class _Source:
    """Source code of the decoder of one struct.

    It reads `v` and builds `o`. `n` counts the known fields. `k` is the current field, for error messages.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.namespace: dict[str, Any] = {
            "WrongType": WrongType,
            "UNKNOWN": UNKNOWN,
            "DROPPED": DROPPED,
            "RESPELLED": RESPELLED,
            "EMPTY": {},
            "emptied": _emptied,
        }
        self.keeps_empty = not schema.name.startswith("io.k8s.api.")
        """Whether empty lists are kept. Objects stored as protobuf do not distinguish an empty list from none."""

    def compiled(self, name: str, lines: list[str]) -> Convert:
        exec(compile("\n".join(lines), f"<{name} {self.schema.name}>", "exec"), self.namespace)
        compiled: Convert = self.namespace[name]
        return compiled

    def of_struct(self) -> list[str]:
        return ["def decode_struct(v, c):", *self._body(), " return o"]

    def of_list(self) -> list[str]:
        body = [" " + line for line in self._body()]
        return ["def decode_list(x, c):", " l = []", " for v in x:", *body, "  l.append(o)", " return l"]

    def _body(self) -> list[str]:
        lines = [
            " if type(v) is not dict:",
            f"  if v is not None: raise WrongType(v, {go_type(self.schema)!r}, struct=True)",
            "  v = EMPTY",
            " o = {}; n = 0; m = len(v); k = ''",
            " try:",
        ]
        indent = ""
        for part in self._parts():
            lines += [indent + line for field in part for line in self._field(field)]
            lines.append(f"  {indent}if n != m:")
            indent += " "
        return [
            *lines,
            f"  {indent}c.append(UNKNOWN)",
            " except WrongType as error:",
            f"  error.within(k, {self.schema.name.rpartition('.')[2]!r})",
            "  raise",
        ]

    def _parts(self) -> list[list[Field]]:
        """Fields in order, in parts. Once all keys of the value were seen, the next parts are skipped: none of their
        fields is written if it is absent."""
        fields = list(self.schema.fields.values())
        last = max((place for place, field in enumerate(fields, 1) if self._absent(field)), default=0)
        rest = fields[last:]
        if len(rest) <= PART:
            return [fields]
        return [fields[:last], *(rest[place : place + PART] for place in range(0, len(rest), PART))]

    def _field(self, field: Field) -> list[str]:
        key = repr(field.name)
        error_key = repr(f"{field.embedded}.{field.name}" if field.embedded else field.name)
        absent = self._absent(field)
        lines = [f"  if {key} in v:", "   n += 1", f"   x = v[{key}]"]
        lines += ["   " + line for line in self._present(field, key, error_key, absent)]
        if absent:
            lines += [f"  else: o[{key}] = {absent}"]
        if absent and field.schema.format == "quantity":
            lines[-1] += "; c.append(RESPELLED)"
        return lines

    def _present(self, field: Field, key: str, error_key: str, absent: str) -> list[str]:
        schema = field.schema
        check = _CHECKS.get((schema.type, schema.format))
        otherwise = [f"else: o[{key}] = {absent}"] if absent else []
        if check:
            droppable = field.omit_empty and not field.pointer
            return [
                f"if {check}:",
                f" if x: o[{key}] = x" if droppable else f" o[{key}] = x",
                f"elif x is not None: k = {error_key}; raise WrongType(x, {go_type(schema)!r})",
                *otherwise,
            ]
        call = self._call(schema)
        if field.pointer:
            return ["if x is not None:", f" k = {error_key}", f" o[{key}] = {call}", *otherwise]
        if schema.type in ("list", "map") or schema.format == "byte":
            lines = [f"k = {error_key}", f"y = {call}"]
            if field.omit_empty:
                return [*lines, f"if y: o[{key}] = y", "elif x is not None: c.append(DROPPED)"]
            if schema.format == "byte":
                return [*lines, f"o[{key}] = y"]
            written = "None if x is None else y" if self.keeps_empty else "y or emptied(x, c)"
            return [*lines, f"o[{key}] = {written}"]
        if field.omit_zero:
            return [f"k = {error_key}", f"x = {call}", f"if x is not None: o[{key}] = x"]
        return [f"k = {error_key}", f"o[{key}] = {call}"]

    def _absent(self, field: Field) -> str:
        """Expression for an absent field. Empty if the field is omitted."""
        schema = field.schema
        if field.omit_zero or (field.omit_empty and (field.pointer or not _is_struct(schema))):
            return ""
        if field.pointer or schema.type in ("list", "map", "any") or schema.format == "byte":
            return "0" if schema.format == "int-or-string" and not field.pointer else "None"
        if schema.type == "struct":
            return "{}" if not _has_zeros(schema) else f"{self._other('S', schema, converter)}(EMPTY, c)"
        if schema.format in _ZEROS:
            return _ZEROS[schema.format]
        return _ZEROS[schema.type]

    def _call(self, schema: Schema) -> str:
        items = schema.items
        if schema.type == "struct":
            return f"{self._other('S', schema, converter)}(x, c)"
        if items is not None and items.type == "struct":
            check = self._bind(_list if schema.type == "list" else _map, go_type(schema))
            if schema.type == "list":
                convert = self._other("L", items, list_converter)
                return f"{convert}(x if type(x) is list else {check}(x), c)"
            convert = self._other("S", items, converter)
            return f"{{i: {convert}(x[i], c) for i in sorted(x if type(x) is dict else {check}(x))}}"
        return f"{self._name(leaf(schema, go_type, converter))}(x, c)"

    def _other(self, form: str, schema: Schema, compiled: Callable[[Schema], Convert]) -> str:
        """Name of the decoder of another struct, which is compiled on its first call."""
        name = f"{form}_" + "".join(char if char.isalnum() else "_" for char in schema.name)
        if name not in self.namespace:

            def first(value: Any, flags: Flags) -> Any:
                self.namespace[name] = convert = compiled(schema)
                return convert(value, flags)

            self.namespace[name] = first
        return name

    def _bind(self, check: Callable[[Any, str], Any], go: str) -> str:
        return self._name(lambda value: check(value, go))

    def _name(self, function: Callable[..., Any]) -> str:
        name = f"f{len(self.namespace)}"
        self.namespace[name] = function
        return name


_CHECKS = {
    ("string", ""): "type(x) is str",
    ("boolean", ""): "type(x) is bool",
    ("integer", "int32"): "type(x) is int and -2147483648 <= x <= 2147483647",
    ("integer", "int64"): "type(x) is int and -9223372036854775808 <= x <= 9223372036854775807",
}

_ZEROS = {
    "string": "''",
    "boolean": "False",
    "integer": "0",
    "number": "0",
    "quantity": "'0'",
    "time": "None",
    "microtime": "None",
}


def _is_struct(schema: Schema) -> bool:
    """Whether Go has a struct here, which omitempty never omits. Includes structs with another JSON form, such
    as times."""
    return schema.type == "struct" or (
        schema.format in ("quantity", "time", "microtime", "int-or-string", "raw", "json")
    )


def _has_zeros(schema: Schema) -> bool:
    """Whether the zero value of a struct has fields."""
    return any(
        not field.omit_zero and not (field.omit_empty and (field.pointer or not _is_struct(field.schema)))
        for field in schema.fields.values()
    )


def _emptied(value: Any, flags: Flags) -> Any:
    if value is None or KEEP_EMPTY not in flags:
        return None
    flags.append(EMPTY)
    return value


def _list(value: Any, go: str) -> Any:
    if type(value) is list:
        return value
    if value is None:
        return ()
    raise WrongType(value, go)


def _map(value: Any, go: str) -> Any:
    if type(value) is dict:
        return value
    if value is None:
        return ()
    raise WrongType(value, go)


_GO_SCALARS = {"boolean": "bool", "string": "string", "number": "float64"}


def go_type(schema: Schema) -> str:
    """Go type name in messages about wrong types."""
    if schema.go_type:
        return schema.go_type
    if schema.type == "list":
        return "[]" + go_type(schema.items) if schema.items else "[]interface {}"
    if schema.type == "map":
        return "map[string]" + go_type(schema.items) if schema.items else "map[string]interface {}"
    if schema.name:
        return ".".join(schema.name.split(".")[-2:])
    if schema.type == "integer":
        return schema.format
    return "[]uint8" if schema.format == "byte" else _GO_SCALARS.get(schema.type, "interface {}")
