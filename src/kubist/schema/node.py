"""The one schema tree. Decoding, pruning, defaulting, patches, apply, protobuf and OpenAPI walk these nodes.

Built-in kinds get theirs from the catalog (`schema/catalog.py`), custom resources from their definition.
Nodes are immutable once built and shared between servers; structs are built on first use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

Type = Literal["struct", "map", "list", "string", "integer", "number", "boolean", "any"]
"""`struct` has named fields, `map` arbitrary string keys, `any` is arbitrary JSON that nothing looks into."""

UNSET: Any = type("Unset", (), {"__repr__": lambda _self: "UNSET", "__bool__": lambda _self: False})()
"""No default: distinct from a default of null."""


class Schema:
    """What one value may be. For a list `items` is the element, for a map the value."""

    __slots__ = (
        "_fields",
        "additional",
        "default",
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
        """The OpenAPI name of a type of the catalog (`io.k8s.api.core.v1.Pod`), else empty. Nodes of one name
        share their fields; they differ in what the referring field says (default, merge key)."""
        self.format = format
        """int32, int64, double; byte (base64), time, microtime, quantity, int-or-string, fields-v1, raw
        (RawExtension: any JSON, kept as sent), json, schema-or-array, schema-or-bool, schema-or-strings
        (parts of a definition's schema); what OpenAPI calls a format for custom resources."""
        self._fields = fields
        self.items = items
        self.list_type = list_type
        self.map_keys = map_keys
        self.map_type = map_type
        self.merge_key = merge_key
        self.patch_strategies = patch_strategies
        """Of strategic merge patch: merge, replace, retainKeys."""
        self.default = default
        self.enum = enum
        self.nullable = nullable
        self.preserve_unknown = preserve_unknown
        self.embedded_resource = embedded_resource
        self.int_or_string = int_or_string
        self.additional = additional
        """A struct that also takes other keys, each an `items` (custom resources only)."""
        self.proto = proto
        """The protobuf message (`k8s.io.api.core.v1.Pod`) of a struct, or of a list that is one."""
        self.embeds = embeds
        """Structs whose fields JSON inlines into this one; in protobuf they are messages of their own."""
        self.go_type = go_type
        """How errors spell this type (`v1.Protocol`), where the schema does not imply it."""
        self.extras = extras
        """What only OpenAPI output needs: unions, group-version-kinds, validation keywords."""

    def referred(self, **changes: Any) -> Schema:
        """The same type as another field refers to it."""
        node = Schema.__new__(Schema)
        for slot in Schema.__slots__:
            setattr(node, slot, getattr(self, slot))
        if callable(self._fields):
            node._fields = lambda: self.fields
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
        """Absent and zero differ: an explicit `0`, `""`, `false` or `{}` survives. Without it zero is absent
        (or, with `omit_empty` False, always written)."""
        self.omit_empty = omit_empty
        """False: written even when zero (`""`, `0`, `false`, null for lists and maps). A struct that is not a
        pointer is always written, as `{}`, unless it is of a kind that knows its own emptiness (times)."""
        self.omit_zero = omit_zero
        """Even a struct (a time) that is zero is left out."""
        self.required = required
        self.number = number
        """The protobuf number; 0 where one of the struct's `embeds` has it, or JSON alone."""
        self.embedded = embedded
        """The inlined structs through which the field is reached (`VolumeSource`), as messages spell them."""
