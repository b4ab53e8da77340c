"""Nodes of the schema tree. Decoding, pruning, defaulting, patches, apply, protobuf and OpenAPI use them.

Built-in kinds get their nodes from the catalog (`model/schema/catalog.py`), custom resources from their CRD. Nodes
are immutable and shared between servers. Structs are built on first use.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Literal, TypeVar, cast

T = TypeVar("T")

Type = Literal["struct", "map", "list", "string", "integer", "number", "boolean", "any"]
"""`struct` has named fields, `map` has arbitrary string keys, `any` is arbitrary JSON without a schema."""

UNSET: Any = type("Unset", (), {"__repr__": lambda _self: "UNSET", "__bool__": lambda _self: False})()
"""Marker for no default, which differs from a default of null."""


class Schema:
    """Type of one value. `items` is the element of a list or the value of a map."""

    __slots__ = (
        "_fields",
        "additional",
        "default",
        "derived",
        "embedded_resource",
        "embeds",
        "enum",
        "extras",
        "format",
        "go_type",
        "int_or_string",
        "items",
        "list_type",
        "map_keys",
        "map_type",
        "merge_key",
        "name",
        "nullable",
        "patch_strategies",
        "preserve_unknown",
        "proto",
        "type",
    )

    def __init__(
        self,
        type: Type,
        *,
        name: str = "",
        format: str = "",
        fields: dict[str, Field] | Callable[[], dict[str, Field]] | None = None,
        items: Schema | None = None,
        list_type: Literal["", "atomic", "set", "map"] = "",
        map_keys: tuple[str, ...] = (),
        map_type: Literal["", "atomic", "granular"] = "",
        merge_key: str = "",
        patch_strategies: tuple[str, ...] = (),
        default: Any = UNSET,
        enum: tuple[str, ...] = (),
        nullable: bool = False,
        preserve_unknown: bool = False,
        embedded_resource: bool = False,
        int_or_string: bool = False,
        additional: bool = False,
        proto: str = "",
        embeds: tuple[Field, ...] = (),
        go_type: str = "",
        extras: dict[str, Any] | None = None,
    ) -> None:
        self.type = type
        self.name = name
        """OpenAPI name of a type of the catalog (`io.k8s.api.core.v1.Pod`). Empty for other types.

        Nodes of one name share their fields. They may differ in properties of the referring field (default,
        merge key).
        """
        self.format = format
        """Format: int32, int64, double; byte (base64), time, microtime, quantity, int-or-string, fields-v1, raw
        (RawExtension: any JSON, kept as sent), json, schema-or-array, schema-or-bool, schema-or-strings (parts
        of a CRD's schema). For custom resources the OpenAPI format."""
        self._fields = fields
        self.items = items
        self.list_type = list_type
        self.map_keys = map_keys
        self.map_type = map_type
        self.merge_key = merge_key
        self.patch_strategies = patch_strategies
        """Strategies of strategic merge patch: merge, replace, retainKeys."""
        self.default = default
        self.enum = enum
        self.nullable = nullable
        self.preserve_unknown = preserve_unknown
        self.embedded_resource = embedded_resource
        self.int_or_string = int_or_string
        self.additional = additional
        """Whether a struct also accepts other keys with values of type `items` (custom resources only)."""
        self.proto = proto
        """Protobuf message (`k8s.io.api.core.v1.Pod`) of a struct, or of a list that is a message."""
        self.embeds = embeds
        """Structs with fields that JSON inlines into this one. In protobuf they are messages."""
        self.go_type = go_type
        """Go name of the type in error messages (`v1.Protocol`), if it does not follow from the schema."""
        self.extras = extras
        """Properties for OpenAPI documents only: unions, group-version-kinds, validation keywords."""
        self.derived: dict[Any, Any] | None = None
        """Values of functions with the decorator `kept`, by function."""

    def referred(self, **changes: Any) -> Schema:
        """Node of the same type for another referring field."""
        node = Schema.__new__(Schema)
        for slot in Schema.__slots__:
            setattr(node, slot, getattr(self, slot))
        if callable(self._fields):
            node._fields = lambda: self.fields
        node.derived = None
        for slot, value in changes.items():
            setattr(node, slot, value)
        return node

    @property
    def fields(self) -> dict[str, Field]:
        """Fields of a struct by JSON name, in the order in which they are written."""
        fields = self._fields
        if fields is None:
            return {}
        if callable(fields):
            fields = self._fields = fields()
        return fields

    def __repr__(self) -> str:
        return f"<Schema {self.type} {self.name or self.format}>"


class Field:
    """One field of a struct."""

    __slots__ = ("embedded", "name", "number", "omit_empty", "omit_zero", "pointer", "required", "schema")

    def __init__(
        self,
        name: str,
        schema: Schema,
        *,
        pointer: bool = False,
        omit_empty: bool = True,
        omit_zero: bool = False,
        required: bool = False,
        number: int = 0,
        embedded: str = "",
    ) -> None:
        self.name = name
        self.schema = schema
        self.pointer = pointer
        """Whether the Go field is a pointer: absent and zero differ, so an explicit `0`, `""`, `false` or `{}`
        is kept.

        Without a pointer, zero is absent (or always written if `omit_empty` is False).
        """
        self.omit_empty = omit_empty
        """False: written even if zero (`""`, `0`, `false`, null for lists and maps).

        A struct that is not a pointer is always written, as `{}`, unless its type knows its own zero value
        (times).
        """
        self.omit_zero = omit_zero
        """Whether even a zero struct (a time) is omitted."""
        self.required = required
        self.number = number
        """Protobuf field number. 0 if one of the struct's `embeds` has it, or if the field exists in JSON only."""
        self.embedded = embedded
        """Names of the inlined structs that contain the field (`VolumeSource`), as error messages show them."""


def kept(function: Callable[[Schema], T]) -> Callable[[Schema], T]:
    """Decorator that caches a value in the schema it belongs to, so that it lives no longer than the schema. Every
    change of a CRD makes new schemas, and a separate cache would keep the old ones."""

    @wraps(function)
    def value(schema: Schema) -> T:
        derived = schema.derived
        if derived is None:
            derived = schema.derived = {}
        if function in derived:
            return cast("T", derived[function])
        result = derived[function] = function(schema)
        return result

    return value
