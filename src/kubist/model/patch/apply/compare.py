"""Comparison of two values of one type: sets of added, modified and removed fields."""

from __future__ import annotations

from typing import Any

from kubist.model.patch.apply.sets import LEAF, SELF, Set, ordered, recursive_difference, union
from kubist.model.patch.apply.typed import ListType, MapType, Type
from kubist.model.patch.apply.whole import elements, everything, members

Parts = tuple[Set, Set, Set]
"""Added, modified, removed."""


class Comparison:
    __slots__ = ("_changed", "added", "modified", "removed")

    def __init__(self, added: Set, modified: Set, removed: Set) -> None:
        self.added = added
        self.modified = modified
        self.removed = removed
        self._changed: Set | None = None

    def without(self, fields: Set) -> Comparison:
        """Comparison without `fields` and everything below them."""
        if not any(part.keys() & fields.keys() for part in (self.added, self.modified, self.removed)):
            return self
        return Comparison(
            recursive_difference(self.added, fields),
            recursive_difference(self.modified, fields),
            recursive_difference(self.removed, fields),
        )

    @property
    def changed(self) -> Set:
        if self._changed is None:
            self._changed = union(self.modified, self.added)
        return self._changed


def compare(kind: Type, old: dict[str, Any], new: dict[str, Any]) -> Comparison:
    assert kind.map is not None
    return Comparison(*_compare_maps(kind.map, old, new))


def changed(kind: Type, old: Any, new: Any) -> Set | None:
    """Field set node of the added and modified fields of an existing value. None: unchanged."""
    if old == new:
        return None
    into: Parts = {}, {}, {}
    _compare(kind, SELF, old, new, into)
    return union(into[0], into[1]).get(SELF)


def _compare(kind: Type, element: str, old: Any, new: Any, into: Parts) -> None:
    """Compares two present, unequal values. Null counts as an empty container if the other value is a container."""
    if type(old) is type(new) is str:
        into[1][element] = LEAF
        return
    inner = _NOTHING
    plain = True
    if isinstance(old, dict) or isinstance(new, dict):
        split = kind.map
        if split is not None and not split.atomic and (old or new):
            if type(old) is type(new) is dict:
                plain, inner = False, _compare_maps(split, old, new)
            else:
                plain = _other(old, dict) or _other(new, dict)
                inner = _compare_maps(split, _map(old), _map(new))
    elif isinstance(old, list) or isinstance(new, list):
        items = kind.list
        if items is not None and not items.atomic and (old or new):
            plain = _other(old, list) or _other(new, list)
            inner = _compare_lists(items, _list(old), _list(new))
    added, modified, removed = inner
    if added:
        into[0][element] = added
    if removed:
        into[2][element] = removed
    if plain:
        into[1][element] = {SELF: LEAF, **modified} if modified else LEAF
    elif modified:
        into[1][element] = modified


_NOTHING: Parts = LEAF, LEAF, LEAF


def _other(value: Any, form: type) -> bool:
    return value is not None and not isinstance(value, form)


def _map(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _compare_maps(split: MapType, old: dict[str, Any], new: dict[str, Any]) -> Parts:
    into: Parts | None = None
    fresh = []
    for key, value in new.items():
        if key not in old:
            fresh.append(key)
            continue
        before = old[key]
        if before is value or before == value:
            continue
        child = split.child(key)
        if child is not None:
            into = into or ({}, {}, {})
            _compare(child[1], child[0], before, value, into)
    added = members(split, new, tuple(fresh)) if fresh else LEAF
    removed = LEAF
    if len(old) > len(new) - len(fresh):
        removed = members(split, old, tuple([key for key in old if key not in new]))
    if into is None:
        return added, LEAF, removed
    into[0].update(added)
    into[2].update(removed)
    return _ordered(into)


def _compare_lists(items: ListType, old: list[Any], new: list[Any]) -> Parts:
    if not old:
        return elements(items, new), LEAF, LEAF
    if not new:
        return LEAF, LEAF, elements(items, old)
    into: Parts = {}, {}, {}
    added, modified, removed = into
    before, after = _named(items, old), _named(items, new)
    for element in {**before, **after}:
        left, right = before.get(element, []), after.get(element, [])
        if left == right:
            continue
        if len(left) <= 1 and len(right) <= 1:
            if not left:
                added[element] = everything(items.element, right[0])
            elif not right:
                removed[element] = everything(items.element, left[0])
            else:
                _compare(items.element, element, left[0], right[0], into)
        elif len(left) > 1 and len(right) > 1:
            modified[element] = LEAF
        elif len(left) > 1:
            if right:
                added[element] = everything(items.element, right[0])
            removed[element] = LEAF
        else:
            if left:
                removed[element] = everything(items.element, left[0])
            added[element] = LEAF
    return _ordered(into)


def _ordered(parts: Parts) -> Parts:
    added, modified, removed = parts
    return (
        ordered(added) if len(added) > 1 else added,
        ordered(modified) if len(modified) > 1 else modified,
        ordered(removed) if len(removed) > 1 else removed,
    )


def _named(items: ListType, values: list[Any]) -> dict[str, list[Any]]:
    """Items by path element. Items with the same path element are in one list."""
    named: dict[str, list[Any]] = {}
    for item in values:
        named.setdefault(items.name(item), []).append(item)
    return named
