"""What changed between two values of one type: the fields added, those modified and those removed."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from kubist.patch.apply.fields import everything
from kubist.patch.apply.sets import LEAF, SELF, Set, ordered, recursive_difference, union
from kubist.patch.apply.typed import ListType, MapType, Type


@dataclass
class Comparison:
    added: Set = field(default_factory=dict)
    modified: Set = field(default_factory=dict)
    removed: Set = field(default_factory=dict)

    def without(self, fields: Set) -> Comparison:
        """Leave out `fields` and all below them."""
        if not fields:
            return self
        return Comparison(
            *(recursive_difference(s, fields) for s in (self.added, self.modified, self.removed))
        )

    @cached_property
    def changed(self) -> Set:
        return union(self.modified, self.added)


def compare(kind: Type, old: dict[str, Any], new: dict[str, Any]) -> Comparison:
    comparison = Comparison()
    assert kind.map is not None
    _compare_maps(kind.map, old, new, comparison)
    return comparison


def _compare(kind: Type, element: str, old: Any, new: Any, into: Comparison) -> None:
    """Two values, both there and not equal. Null stands for an empty container if the other is one."""
    inner = Comparison()
    plain = False
    if isinstance(old, dict) or isinstance(new, dict):
        split = kind.map
        if split is None or split.atomic or not (old or new):
            plain = True
        else:
            plain = not (isinstance(old, dict | None) and isinstance(new, dict | None))
            _compare_maps(split, _map(old), _map(new), inner)
    elif isinstance(old, list) or isinstance(new, list):
        items = kind.list
        if items is None or items.atomic or not (old or new):
            plain = True
        else:
            plain = not (isinstance(old, list | None) and isinstance(new, list | None))
            _compare_lists(items, _list(old), _list(new), inner)
    else:
        plain = True
    if inner.added:
        into.added[element] = inner.added
    if inner.removed:
        into.removed[element] = inner.removed
    if plain:
        into.modified[element] = {SELF: LEAF, **inner.modified} if inner.modified else LEAF
    elif inner.modified:
        into.modified[element] = inner.modified


def _map(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _compare_maps(split: MapType, old: dict[str, Any], new: dict[str, Any], into: Comparison) -> None:
    for key, value in new.items():
        if key in old:
            before = old[key]
            if before is value or before == value:
                continue
            child = split.child(key)
            if child is not None:
                _compare(child[1], child[0], before, value, into)
        else:
            child = split.child(key)
            if child is not None:
                into.added[child[0]] = everything(child[1], value)
    for key, before in old.items():
        if key not in new:
            child = split.child(key)
            if child is not None:
                into.removed[child[0]] = everything(child[1], before)
    _order(into)


def _compare_lists(items: ListType, old: list[Any], new: list[Any], into: Comparison) -> None:
    before, after = _named(items, old), _named(items, new)
    for element in {**before, **after}:
        left, right = before.get(element, []), after.get(element, [])
        if left == right:
            continue
        if len(left) <= 1 and len(right) <= 1:
            if not left:
                into.added[element] = everything(items.element, right[0])
            elif not right:
                into.removed[element] = everything(items.element, left[0])
            else:
                _compare(items.element, element, left[0], right[0], into)
        elif len(left) > 1 and len(right) > 1:
            into.modified[element] = LEAF
        elif len(left) > 1:
            if right:
                into.added[element] = everything(items.element, right[0])
            into.removed[element] = LEAF
        else:
            if left:
                into.removed[element] = everything(items.element, left[0])
            into.added[element] = LEAF
    _order(into)


def _named(items: ListType, values: list[Any]) -> dict[str, list[Any]]:
    """Items by name. Those that share one are taken together."""
    named: dict[str, list[Any]] = {}
    for item in values:
        named.setdefault(items.name(item), []).append(item)
    return named


def _order(comparison: Comparison) -> None:
    if comparison.added:
        comparison.added = ordered(comparison.added)
    if comparison.modified:
        comparison.modified = ordered(comparison.modified)
    if comparison.removed:
        comparison.removed = ordered(comparison.removed)
