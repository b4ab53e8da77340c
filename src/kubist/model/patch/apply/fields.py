"""Field set that an applied configuration claims, and adaptation of sets to schemas. The set of a whole value
is in `whole`."""

from __future__ import annotations

from typing import Any

from kubist.model.patch.apply.sets import LEAF, SELF, Set, is_member
from kubist.model.patch.apply.typed import FREE, MapType, Type


def claimed(kind: Type, obj: dict[str, Any]) -> Set:
    """Field set that applying `obj` claims: leaves, list elements and map keys, but not the structs around them."""
    return _claimed(kind, obj, member=False) or LEAF if obj else LEAF


def _claimed(kind: Type, value: Any, member: bool) -> Set | None:
    """Node of a value. `member`: the value itself is a member. None: no node."""
    if isinstance(value, dict):
        split = kind.map
        if not value or split is None or split.atomic:
            return LEAF
        node: Set = {SELF: LEAF} if member else {}
        fields, other = split.fields, split.element or FREE
        for key in sorted(value):
            inner = value[key]
            field = fields.get(key)
            if type(inner) is str:
                node[field[0] if field is not None else "f:" + key] = LEAF
            elif field is not None:
                below = _claimed(field[1], inner, member=False)
                if below is not None:
                    node[field[0]] = below
            else:
                node["f:" + key] = _claimed(other, inner, member=True)
        return node or None
    if isinstance(value, list):
        items = kind.list
        if items is None or items.atomic:
            return LEAF
        if not value:
            return LEAF if member else None
        node = {SELF: LEAF} if member else {}
        named, repeated = items.by_name(value)
        for element, item in named.items():
            node[element] = LEAF if element in repeated else _claimed(items.element, item, member=True)
        return node
    return LEAF


def with_structs(kind: Type | None, fields: Set) -> Set:
    """`fields` plus the structs that contain them."""
    split = kind.map if kind is not None else None
    made: Set = {}
    for element, node in fields.items():
        if not node:
            made[element] = node
            continue
        inner: Type | None = None
        named = False
        if element[0] == "f" and split is not None:
            field = split.child(element[2:])
            inner = field[1] if field is not None else None
            named = element[2:] in split.fields
        elif element[0] == "k" and kind is not None and kind.list is not None:
            inner = kind.list.element
        below = with_structs(inner, node)
        made[element] = {SELF: LEAF, **below} if named and SELF not in below else below
    return made


def reconciled(kind: Type, fields: Set) -> Set:
    """`fields` adapted to the schema: an atomic value is owned as a whole, even if an older schema split it."""
    made: Set | None = None
    for element, node in fields.items():
        if not node:
            continue
        inner = _inner(kind, element)
        if inner is None or inner is FREE:
            continue
        rest = LEAF if inner.atomic else reconciled(inner, node) if any(node.values()) else node
        if rest is not node:
            made = made or fields.copy()
            made[element] = rest
    return fields if made is None else made


def _inner(kind: Type, element: str) -> Type | None:
    split: MapType | None = kind.map
    if split is not None:
        field = split.child(element[2:]) if element[0] == "f" else None
        return field[1] if field is not None else None
    return kind.list.element if kind.list is not None else None


def below(fields: Set, element: str) -> Set:
    """Members of a set below an element."""
    node: Set = fields.get(element, LEAF)
    return node


def holds(fields: Set, element: str) -> bool:
    node = fields.get(element)
    return node is not None and is_member(node)
