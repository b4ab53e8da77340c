"""Bodies of the control API: classes whose annotated fields give the parser, its errors and the OpenAPI schema.

    class NewSnapshot(Body):
        name: Annotated[str, text(dns_subdomain), "DNS subdomain name."]

A field of the JSON object has the name of the attribute in camelCase. A `FieldType` in the annotation reads and
describes it; the default is the one for its Python type. A string in the annotation is the description. A field that
has no default and may not be None is required.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from functools import cache
from inspect import get_annotations
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from kubist.model.meta.object import Object
from kubist.testbench.control_api import field_types
from kubist.testbench.control_api.field_types import Fields, FieldType

T = TypeVar("T")


@dataclass_transform(kw_only_default=True)
class Body:
    """Fields of a JSON object. The class attributes are their defaults."""

    def __init_subclass__(cls, *, total: bool = True) -> None:
        """`total=False`: no field is required."""
        cls._is_total = total

    _is_total = True

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)

    def check(self, fields: Fields) -> None:
        """Rejects fields that are invalid together."""


def read(fields: Fields, body: type[T], **parse: Callable[[Any], Any]) -> T:
    """Reads the fields of a class. Errors are kept for `done`. `parse` makes the final values of some fields;
    its ValueErrors reject them."""
    values: dict[str, Any] = {}
    kind: type = body
    for field in fields_of(kind):
        value = field.type.read(fields, field.json_name, field.default)
        if value is not None and field.name in parse:
            value = fields.convert(field.json_name, value, parse[field.name], field.default)
        values[field.name] = value
    made = body(**values)
    if isinstance(made, Body):
        made.check(fields)
    return made


class Nested(FieldType):
    """Object with fields of its own; in a response, or a list of them."""

    def __init__(self, body: type, *, is_list: bool = False) -> None:
        super().__init__({})
        self.body, self.is_list = body, is_list

    def read(self, fields: Fields, name: str, default: Any) -> Any:
        return read(fields.below(name), self.body)


class JSONName(NamedTuple):
    """Name of a field in JSON, if it differs from the attribute's name in camelCase."""

    name: str


_USUAL: dict[Any, FieldType] = {
    str: field_types.TEXT,
    bool: field_types.BOOLEAN,
    int: FieldType({"type": "integer"}),
    float: field_types.NUMBER,
    Any: field_types.ANY,
    Object: field_types.OBJECT,
    list[Object]: field_types.objects("objects"),
    tuple[str, ...]: field_types.TEXTS,
}
"""Type of a field by its Python type."""


class Field(NamedTuple):
    """Field of a class."""

    name: str
    json_name: str
    type: FieldType
    description: str
    is_required: bool
    default: Any


@cache
def fields_of(body: type) -> tuple[Field, ...]:
    """Fields of a class in the order in which they are read: its own, then those of its base classes."""
    hints = get_type_hints(body, include_extras=True)
    names = dict.fromkeys(name for each in body.__mro__ for name in get_annotations(each))
    return tuple(_field(body, name, hints[name]) for name in names if not name.startswith("_"))


def _field(body: type, name: str, hint: Any) -> Field:
    python_type, extras, may_be_none = _split(hint)
    json_name, description, type_ = _camel_case(name), "", None
    for extra in reversed(extras):
        if isinstance(extra, JSONName):
            json_name = extra.name
        elif isinstance(extra, str):
            description = extra
        elif isinstance(extra, FieldType):
            type_ = extra
    default = getattr(body, name, None)
    if isinstance(default, types.MemberDescriptorType):  # a dataclass with slots
        default = body.__dataclass_fields__[name].default  # type: ignore[attr-defined]
    is_required = default is None and not may_be_none and getattr(body, "_is_total", True)
    return Field(name, json_name, type_ or _usual(python_type), description, is_required, default)


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


def _split(hint: Any) -> tuple[Any, list[Any], bool]:
    """Python type of an annotation, its further parts, outer ones first, and whether it may be None."""
    if get_origin(hint) is Annotated:
        python_type, *extras = get_args(hint)
        python_type, inner, may_be_none = _split(python_type)
        return python_type, [*extras, *inner], may_be_none
    if get_origin(hint) in (Union, types.UnionType):
        [python_type] = [each for each in get_args(hint) if each is not type(None)]
        return *_split(python_type)[:2], True
    return hint, [], False


def _usual(python_type: Any) -> FieldType:
    if python_type in _USUAL:
        return _USUAL[python_type]
    if get_origin(python_type) is Literal:
        return field_types.choice(*get_args(python_type))
    if get_origin(python_type) in (list, tuple):
        return Nested(get_args(python_type)[0], is_list=True)
    return Nested(python_type)
