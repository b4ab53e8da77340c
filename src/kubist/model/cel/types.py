"""CEL types and their assignability."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Type:
    """A type. Object types are identified by name; `fields` are the selectable fields."""

    __slots__ = ("_fields", "kind", "name", "params", "props")

    def __init__(
        self,
        kind: str,
        name: str = "",
        params: tuple[Type, ...] = (),
        fields: dict[str, Type] | Callable[[], dict[str, Type]] | None = None,
        props: dict[str, Any] | None = None,
    ) -> None:
        self.kind = kind
        self.name = name or kind
        self.params = params
        self._fields = fields
        self.props = props
        """The schema, for a type that comes from one."""

    @property
    def fields(self) -> dict[str, Type]:
        if callable(self._fields):
            self._fields = self._fields()
        return {} if self._fields is None else self._fields

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Type):
            return NotImplemented
        return self.kind == other.kind and self.name == other.name and self.params == other.params

    def __hash__(self) -> int:
        return hash((self.kind, self.name, self.params))

    def __str__(self) -> str:
        if self.kind in ("list", "map", "opaque", "type") and self.params:
            return f"{self.name}({', '.join(map(str, self.params))})"
        return self.name


BOOL, INT, UINT, DOUBLE = Type("bool"), Type("int"), Type("uint"), Type("double")
STRING, BYTES, NULL = Type("string"), Type("bytes"), Type("null", "null")
DURATION, TIMESTAMP = Type("duration"), Type("timestamp")
DYN, ERROR = Type("dyn"), Type("error", "!error!")
QUANTITY = Type("opaque", "kubernetes.Quantity")
IP, CIDR, URL = Type("opaque", "net.IP"), Type("opaque", "net.CIDR"), Type("opaque", "kubernetes.URL")
SEMVER, FORMAT = Type("opaque", "kubernetes.Semver"), Type("opaque", "kubernetes.NamedFormat")
SIMPLE = {
    "bool": BOOL,
    "int": INT,
    "uint": UINT,
    "double": DOUBLE,
    "string": STRING,
    "bytes": BYTES,
    "null": NULL,
    "duration": DURATION,
    "timestamp": TIMESTAMP,
    "dyn": DYN,
    "quantity": QUANTITY,
    "ip": IP,
    "cidr": CIDR,
    "url": URL,
    "semver": SEMVER,
    "format": FORMAT,
}
_NULLABLE = frozenset(("null", "duration", "timestamp", "object", "opaque", "dyn", "error", "type"))


def list_of(element: Type) -> Type:
    return Type("list", "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", "map", (key, value))


def optional_of(value: Type) -> Type:
    return Type("opaque", "optional_type", (value,))


def type_of(value: Type) -> Type:
    return Type("type", "type", (value,))


def object_type(
    name: str, fields: dict[str, Type] | Callable[[], dict[str, Type]], props: dict[str, Any] | None = None
) -> Type:
    return Type("object", name, (), fields, props)


def is_optional(type_: Type) -> bool:
    return type_.kind == "opaque" and type_.name == "optional_type"


Bindings = dict[str, Type]
"""Values of type parameters."""


def substitute(type_: Type, bindings: Bindings, *, free_to_dyn: bool = False) -> Type:
    if type_.kind == "param":
        binding = bindings.get(type_.name)
        if binding is not None:
            return substitute(binding, bindings, free_to_dyn=free_to_dyn)
        return DYN if free_to_dyn else type_
    if not type_.params:
        return type_
    params = tuple(substitute(param, bindings, free_to_dyn=free_to_dyn) for param in type_.params)
    return (
        type_ if params == type_.params else Type(type_.kind, type_.name, params, type_._fields, type_.props)
    )


def assignable(source: Type, target: Type, bindings: Bindings) -> bool:
    """Whether a value of type `source` fits type `target`. Binds type parameters, even on failure."""
    if source is target:
        return True
    if source.kind == "param" or target.kind == "param":
        return _bind(source, target, bindings)
    if source.kind in ("dyn", "error") or target.kind in ("dyn", "error"):
        return True
    if source.kind == "null":
        return target.kind in _NULLABLE
    if target.kind == "null":
        return source.kind in _NULLABLE
    if source.kind != target.kind or source.name != target.name or len(source.params) != len(target.params):
        return False
    if source.kind == "type":
        return True
    return all(assignable(a, b, bindings) for a, b in zip(source.params, target.params, strict=True))


def _bind(source: Type, target: Type, bindings: Bindings) -> bool:
    for param, other, forward in ((target, source, True), (source, target, False)):
        if param.kind != "param":
            continue
        old = bindings.get(param.name)
        if old is not None:
            fits = assignable(other, old, bindings) if forward else assignable(old, other, bindings)
            if not fits:
                return False
            if (old.kind != "dyn" and other.kind == "dyn") or (old.kind == "null" and other.kind != "null"):
                bindings[param.name] = other
            return True
        if other.kind == "param" and other.name == param.name:
            return True
        if _occurs(param.name, substitute(other, bindings)):
            return False
        bindings[param.name] = other
        return True
    return False


def _occurs(name: str, type_: Type) -> bool:
    if type_.kind == "param":
        return type_.name == name
    return any(_occurs(name, param) for param in type_.params)
