"""What changed between two values of one type: the fields added, those modified and those removed."""

from __future__ import annotations

from typing import Any

from kubist.patch.apply.sets import LEAF, SELF, Set, ordered, recursive_difference, union
from kubist.patch.apply.typed import ListType, MapType, Type
from kubist.patch.apply.whole import elements, everything, members


class Comparison:
    __slots__ = ("_changed", "added", "modified", "removed")

    def __init__(self, added: Set = LEAF, modified: Set = LEAF, removed: Set = LEAF) -> None:
        self.added = added
        self.modified = modified
        self.removed = removed
        self._changed: Set | None = None

    def without(self, fields: Set) -> Comparison:
        """Leave out `fields` and all below them."""
        if not fields:
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
    return _compare_maps(kind.map, old, new)


def changed(kind: Type, old: Any, new: Any) -> Set | None:
    """The node of what is changed or added in a value that was there before; None: nothing is."""
    if old == new:
        return None
    made = Comparison({}, {}, {})
    _compare(kind, SELF, old, new, made)
    return made.changed.get(SELF)


def _compare(kind: Type, element: str, old: Any, new: Any, into: Comparison) -> None:
    """Two values, both there and not equal. Null stands for an empty container if the other is one."""
    inner = _NOTHING
    plain = True
    if isinstance(old, dict) or isinstance(new, dict):
        split = kind.map
        if split is not None and not split.atomic and (old or new):
            plain = _other(old, dict) or _other(new, dict)
            inner = _compare_maps(split, _map(old), _map(new))
    elif isinstance(old, list) or isinstance(new, list):
        items = kind.list
        if items is not None and not items.atomic and (old or new):
            plain = _other(old, list) or _other(new, list)
            inner = _compare_lists(items, _list(old), _list(new))
    if inner.added:
        into.added[element] = inner.added
    if inner.removed:
        into.removed[element] = inner.removed
    if plain:
        into.modified[element] = {SELF: LEAF, **inner.modified} if inner.modified else LEAF
    elif inner.modified:
        into.modified[element] = inner.modified


_NOTHING = Comparison()


def _other(value: Any, form: type) -> bool:
    return value is not None and not isinstance(value, form)


def _map(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _compare_maps(split: MapType, old: dict[str, Any], new: dict[str, Any]) -> Comparison:
    added = [key for key in new if key not in old]
    removed = [key for key in old if key not in new]
    made = Comparison(
        members(split, new, tuple(added)) if added else {},
        {},
        members(split, old, tuple(removed)) if removed else {},
    )
    if len(added) == len(new):
        return made
    for key, value in new.items():
        if key in old:
            before = old[key]
            if before is value or before == value:
                continue
            child = split.child(key)
            if child is not None:
                _compare(child[1], child[0], before, value, made)
    return _ordered(made)


def _compare_lists(items: ListType, old: list[Any], new: list[Any]) -> Comparison:
    if not old:
        return Comparison(elements(items, new))
    if not new:
        return Comparison(removed=elements(items, old))
    made = Comparison({}, {}, {})
    before, after = _named(items, old), _named(items, new)
    for element in {**before, **after}:
        left, right = before.get(element, []), after.get(element, [])
        if left == right:
            continue
        if len(left) <= 1 and len(right) <= 1:
            if not left:
                made.added[element] = everything(items.element, right[0])
            elif not right:
                made.removed[element] = everything(items.element, left[0])
            else:
                _compare(items.element, element, left[0], right[0], made)
        elif len(left) > 1 and len(right) > 1:
            made.modified[element] = LEAF
        elif len(left) > 1:
            if right:
                made.added[element] = everything(items.element, right[0])
            made.removed[element] = LEAF
        else:
            if left:
                made.removed[element] = everything(items.element, left[0])
            made.added[element] = LEAF
    return _ordered(made)


def _named(items: ListType, values: list[Any]) -> dict[str, list[Any]]:
    """Items by name. Those that share one are taken together."""
    named: dict[str, list[Any]] = {}
    for item in values:
        named.setdefault(items.name(item), []).append(item)
    return named


def _ordered(comparison: Comparison) -> Comparison:
    if comparison.added:
        comparison.added = ordered(comparison.added)
    if comparison.modified:
        comparison.modified = ordered(comparison.modified)
    if comparison.removed:
        comparison.removed = ordered(comparison.removed)
    return comparison
