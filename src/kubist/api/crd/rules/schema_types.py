"""CEL types of CRD schemas with their maximum sizes, for type checking and cost estimation."""

from __future__ import annotations

import itertools
from typing import Any

from kubist.base.http.limits import BODY_BYTES
from kubist.model.cel.escaping import escape
from kubist.model.cel.types import BOOL, DYN, STRING, Type, list_of, map_of

Props = dict[str, Any]

_serial = itertools.count()


class SchemaType:
    """A CEL type and its sizes. `most` is the maximum number of elements or bytes of a value. `least` is the size of
    the smallest value in bytes of JSON."""

    def __init__(self, type_: Type, most: int = BODY_BYTES, least: int = 1) -> None:
        self.type = type_
        self.most = most
        self.least = least
        self.fields: dict[str, SchemaType] = {}
        """Types by field name, in the escaped form that expressions use."""
        self.element: SchemaType | None = None

    def size_of(self, path: tuple[str, ...]) -> int | None:
        """Maximum size of the value at a path, or None if unknown. The first part of the path is the
        variable's name."""
        here: SchemaType | None = self
        for name in path[1:]:
            if here is None:
                return None
            if name in ("@items", "@values"):
                here = here.element
            elif name == "@keys":
                here = _KEY if here.type.kind == "map" else None
            else:
                here = here.fields.get(name)
        return here.most if here is not None else None

    @property
    def cardinality(self) -> int:
        """Maximum number of values of this type in one request."""
        return BODY_BYTES // (self.least + 1)


_KEY = SchemaType(STRING, 0)
_META = {"type": "object", "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}}}
_LENGTHS = {"duration": 32, "date": 12, "date-time": 32}
_LEAST = {"duration": 3, "date": 12, "date-time": 21}


def with_metadata(props: Props) -> Props:
    """The schema of a resource with kind, apiVersion and metadata (name and generateName)."""
    known = {"kind": {"type": "string"}, "apiVersion": {"type": "string"}, "metadata": _META}
    return {**props, "properties": {**(props.get("properties") or {}), **known}}


def schema_type(props: Props, *, resource: bool = False, name: str = "") -> SchemaType | None:
    """CEL type of a schema. None if it has no type; expressions cannot use such a value."""
    if props.get("x-kubernetes-int-or-string"):
        most = props.get("maxLength")
        return SchemaType(DYN, max(most, 0) * 4 if most is not None else BODY_BYTES - 2, 1)
    if resource:
        props = with_metadata(props)
    match props.get("type"):
        case "array":
            return _array(props, name)
        case "object":
            return _object(props, name)
        case "string":
            return _string(props)
        case "boolean":
            return SchemaType(BOOL, 0, 4)
        case "number":
            return SchemaType(Type("double", props=props), 0, 1)
        case "integer":
            return SchemaType(Type("int", props=props), 0, 1)
    return None


def _array(props: Props, name: str) -> SchemaType | None:
    items = props.get("items")
    if not isinstance(items, dict):
        return None
    inner = schema_type(
        items, resource=bool(items.get("x-kubernetes-embedded-resource")), name=f"{name}.@items"
    )
    if inner is None:
        return None
    most = props.get("maxItems")
    type_ = list_of(inner.type)
    type_.props = props
    array = SchemaType(type_, max(most, 0) if most is not None else (BODY_BYTES - 2) // (inner.least + 1), 2)
    array.element = inner
    return array


def _object(props: Props, name: str) -> SchemaType | None:
    additional = props.get("additionalProperties")
    if isinstance(additional, dict):
        inner = schema_type(
            additional,
            resource=bool(additional.get("x-kubernetes-embedded-resource")),
            name=f"{name}.@values",
        )
        if inner is None:
            return None
        most = props.get("maxProperties")
        type_ = map_of(STRING, inner.type)
        type_.props = props
        schema = SchemaType(
            type_, max(most, 0) if most is not None else (BODY_BYTES - 2) // (inner.least + 6), 2
        )
        schema.element = inner
        return schema
    name = name or f"selfType{next(_serial)}"
    required = props.get("required") or ()
    least = 2
    fields: dict[str, SchemaType] = {}
    for field, inner_props in (props.get("properties") or {}).items():
        embedded = bool(inner_props.get("x-kubernetes-embedded-resource"))
        inner = schema_type(inner_props, resource=embedded, name=f"{name}.{field}")
        if inner is None:
            continue
        escaped = escape(field)
        if escaped is not None:
            fields[escaped] = inner
        if field in required and inner_props.get("default") is None:
            least += len(field) + inner.least + 4
    type_ = Type("object", name, (), {key: inner.type for key, inner in fields.items()}, props)
    schema = SchemaType(type_, BODY_BYTES, least)
    schema.most = 0
    schema.fields = fields
    return schema


def _string(props: Props) -> SchemaType:
    format_ = props.get("format")
    longest = props.get("maxLength")
    if format_ == "byte":
        return SchemaType(
            Type("bytes", props=props), max(longest, 0) if longest is not None else BODY_BYTES - 2, 2
        )
    if format_ in _LENGTHS:
        kind = "duration" if format_ == "duration" else "timestamp"
        return SchemaType(Type(kind, props=props), _LENGTHS[format_], _LEAST[format_])
    if longest is not None:
        return SchemaType(STRING, max(longest, 0) * 4, 2)
    if enum := props.get("enum"):
        return SchemaType(STRING, max((len(v.encode()) for v in enum if isinstance(v, str)), default=0), 2)
    return SchemaType(STRING, BODY_BYTES - 2, 2)
