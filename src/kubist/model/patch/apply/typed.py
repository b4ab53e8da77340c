"""Types for ownership: where a value can be split between managers, and the path elements of its parts.

A `Type` is built once from a `Schema`. Field sets, comparison and merging use it. A value of type `any` is
split only into its maps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable
from itertools import chain
from operator import itemgetter
from typing import Any

from kubist.base.caching import BoundedCache, ComputedCache
from kubist.model.patch.apply import paths
from kubist.model.patch.apply.paths import Element
from kubist.model.schema.node import UNSET, Schema, kept

SPELLINGS = 1024
"""Path elements of items that one list type caches."""


class BadValue(Exception):
    """Value that does not fit its type, so its owners cannot be determined."""


class Type:
    """Forms that a value may have: scalar, list or map. Most types allow one form."""

    __slots__ = ("_splits", "list", "map", "scalar", "whole")

    def __init__(self, scalar: str = "", list: ListType | None = None, map: MapType | None = None) -> None:
        self.scalar = scalar
        """string, numeric, boolean or untyped. Empty: not a scalar."""
        self.list = list
        self.map = map
        self.whole: Callable[[Any], dict[str, Any]] | None = None
        """Field set function of the type, see `whole.py`."""
        self._splits: BoundedCache[bytes, bool] | None = None

    @property
    def splits(self) -> BoundedCache[bytes, bool]:
        """Cache of `ownership.py`: field sets as JSON → whether they are as the type splits values. It is part of the
        type, so that it does not keep the types of replaced CRDs."""
        if self._splits is None:
            self._splits = BoundedCache(entries=128, key_length=4096)
        return self._splits

    @property
    def atomic(self) -> bool:
        """Whether one manager owns the value as a whole."""
        if self.map is not None:
            return self.map.atomic
        return self.list is not None and self.list.atomic


Shapes = BoundedCache[Any, Any]


def remembered_shapes() -> Shapes:
    """Cache for the shapes of one map or list type (`whole.py`)."""
    return BoundedCache(entries=64, key_length=2048)


class MapType:
    """Struct, map or, for custom resources, both."""

    __slots__ = ("_fields", "_maker", "_schema", "atomic", "element", "shapes")

    def __init__(
        self, element: Type | None, atomic: bool, schema: Schema | None = None, maker: _Maker | None = None
    ) -> None:
        self.element = element
        """Type of keys that are not fields. None: such keys are not allowed."""
        self.atomic = atomic
        self.shapes: Shapes = remembered_shapes()
        """Cache of `whole.py` by the keys of a map."""
        self._schema = schema
        self._maker = maker
        self._fields: dict[str, tuple[Element, Type]] | None = None if schema else {}

    @property
    def fields(self) -> dict[str, tuple[Element, Type]]:
        if self._fields is None:
            assert self._schema is not None and self._maker is not None
            self._fields = {
                name: (paths.field(name), self._maker.make(field.schema))
                for name, field in self._schema.fields.items()
            }
            if not self._fields and self.element is None:
                self.element = FREE
        return self._fields

    def child(self, name: str) -> tuple[Element, Type] | None:
        """Path element and type of a key. None: the type does not have the key."""
        field = (self._fields or self.fields).get(name)
        if field is not None:
            return field
        return ("f:" + name, self.element) if self.element is not None else None


class ListType:
    """List type: atomic, a set of scalars, or keyed by fields of its elements."""

    __slots__ = ("_defaults", "_identify", "_keys", "_schema", "_spell", "atomic", "element", "shapes")

    def __init__(
        self, element: Type, atomic: bool, keys: tuple[str, ...] = (), schema: Schema | None = None
    ) -> None:
        self.element = element
        self.atomic = atomic
        self._keys = tuple(sorted(keys))
        self._identify: Callable[[Any], Any] = itemgetter(*self._keys) if keys else _itself
        self._spell = ComputedCache(self._spelled, entries=SPELLINGS, key_length=128).__getitem__
        self._schema = schema
        self._defaults: dict[str, Any] | None = None
        self.shapes: Shapes = remembered_shapes()
        """Cache of `whole.py` by the items of a list."""

    def name(self, item: Any) -> Element:
        """Path element of an item."""
        try:
            identity = self._identify(item)
        except (KeyError, TypeError):
            identity = None
        if type(identity) in _SORTABLE or (
            type(identity) is tuple and _SORTABLE.issuperset(map(type, identity))
        ):
            return self._spell(identity)
        return self._key(item) if self._keys else self._value(item)

    def by_name(self, items: list[Any]) -> tuple[dict[Element, Any], Collection[Element]]:
        """Items by path element, sorted, and the path elements that several items share."""
        if len(items) == 1:
            return {self.name(items[0]): items[0]}, ()
        try:
            named = dict(zip(map(self._identify, items), items, strict=True))
        except (KeyError, TypeError):
            named = {}
        if len(named) == len(items) and _sortable(named):
            spell = self._spell
            return {spell(identity): named[identity] for identity in sorted(named)}, ()
        names = [self.name(item) for item in items]
        named = dict(zip(names, items, strict=True))
        repeated = [name for name, count in Counter(names).items() if count > 1]
        return {name: named[name] for name in sorted(named, key=paths.order)}, frozenset(repeated)

    def shape(self, items: list[Any]) -> Hashable:
        """Cache key of a list: identities and keys of its items. None if an identity is not a string or an integer."""
        try:
            names = tuple(map(self._identify, items))
        except (KeyError, TypeError):
            return None
        if not _SORTABLE.issuperset(map(type, chain.from_iterable(names) if len(self._keys) > 1 else names)):
            return None
        return (names, *map(tuple, items)) if self._keys else names

    def _spelled(self, identity: Any) -> Element:
        """Path element of an item from its key fields, or from the item itself in a set."""
        if not self._keys:
            return paths.value(identity)
        return paths.key(zip(self._keys, identity if len(self._keys) > 1 else (identity,), strict=True))

    def _key(self, item: Any) -> Element:
        if not isinstance(item, dict):
            what = "a null element" if item is None else "non-map elements"
            raise BadValue(f"associative list with keys may not have {what}")
        if self._defaults is None:
            self._defaults = self._find_defaults()
        pairs = []
        for key in self._keys:
            if key in item:
                pairs.append((key, item[key]))
            elif key in self._defaults:
                pairs.append((key, self._defaults[key]))
        if not pairs:
            keys = " ".join(f'"{key}"' for key in self._keys)
            raise BadValue(
                f"associative list with keys has an element that omits all key fields [{keys}] "
                "(and doesn't have default values for any key fields)"
            )
        return paths.key(pairs)

    def _find_defaults(self) -> dict[str, Any]:
        fields = self._schema.fields if self._schema is not None else {}
        defaults = {key: fields[key].schema.default for key in self._keys if key in fields}
        return {
            key: default for key, default in defaults.items() if default is not UNSET and default is not None
        }

    def _value(self, item: Any) -> Element:
        if isinstance(item, dict):
            raise BadValue("associative list without keys has an element that's a map type")
        if isinstance(item, list):
            raise BadValue("not supported: associative list with lists as elements")
        if item is None:
            raise BadValue("associative list without keys has an element that's an explicit null")
        return paths.value(item)


def _itself(item: Any) -> Any:
    return item


_SORTABLE = frozenset((str, int))


def _sortable(identities: Collection[Any]) -> bool:
    """Whether the identities can be sorted directly, because each part has one type in all of them."""
    types = set(map(type, identities))
    if tuple in types:
        return all(map(_sortable, zip(*identities, strict=True)))
    return len(types) == 1 and types <= _SORTABLE


OPAQUE = Type("untyped")
"""Any value, owned as a whole by one manager."""
OPAQUE.list = ListType(OPAQUE, atomic=True)
OPAQUE.map = MapType(OPAQUE, atomic=True)

FREE = Type("untyped", ListType(OPAQUE, atomic=True))
"""Any value. Maps are split, lists are not."""
FREE.map = MapType(FREE, atomic=False)


@kept
def type_of(schema: Schema) -> Type:
    """Type of a kind."""
    return _Maker(preserve=False, made={}).make(schema)


class _Maker:
    """Builds the types of one kind, each once. Structs build their fields on first use."""

    __slots__ = ("made", "preserve")

    def __init__(self, preserve: bool, made: dict[tuple[int, bool], Type]) -> None:
        self.preserve = preserve
        """Whether unknown fields are preserved. Inside such a part all maps preserve them, except those of
        built-in types."""
        self.made = made

    def make(self, schema: Schema) -> Type:
        preserve = schema.preserve_unknown or (self.preserve and not schema.name)
        if preserve != self.preserve:
            return _Maker(preserve, self.made).make(schema)
        known = self.made.get((id(schema), self.preserve))
        if known is None:
            known = self.made[id(schema), self.preserve] = Type()
            made = self._make(schema)
            known.scalar, known.list, known.map = made.scalar, made.list, made.map
        return known

    def _make(self, schema: Schema) -> Type:
        match schema.type:
            case "struct":
                return Type(map=MapType(self._unknown(schema), schema.map_type == "atomic", schema, self))
            case "map":
                element = self.make(schema.items) if schema.items is not None else FREE
                return Type(map=MapType(element, schema.map_type == "atomic"))
            case "list":
                return Type(list=self._list(schema))
            case "integer" | "number":
                return Type("untyped" if schema.int_or_string else "numeric")
            case "boolean":
                return Type("boolean")
            case "string":
                plain = schema.format in ("", "byte") and not schema.int_or_string
                return Type("string" if plain else "untyped")
        if schema.format == "raw":
            return OPAQUE
        return Type("untyped") if schema.format == "int-or-string" else FREE

    def _unknown(self, schema: Schema) -> Type | None:
        """Type of fields that a struct does not name. None: not allowed."""
        if schema.additional:
            return self.make(schema.items) if schema.items is not None else FREE
        return FREE if self.preserve else None

    def _list(self, schema: Schema) -> ListType:
        element = self.make(schema.items) if schema.items is not None else OPAQUE
        if schema.list_type == "map":
            return ListType(element, False, schema.map_keys, schema.items)
        if schema.list_type == "set":
            return ListType(element, False)
        if not schema.list_type and "merge" in schema.patch_strategies:
            return ListType(element, False, (schema.merge_key,) if schema.merge_key else (), schema.items)
        return ListType(element, True)
