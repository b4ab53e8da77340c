"""Merges an applied configuration into an object, and removes fields from an object. Arguments are not modified."""

from __future__ import annotations

from typing import Any

from kubist.model.patch.apply.fields import below, holds
from kubist.model.patch.apply.sets import Set
from kubist.model.patch.apply.typed import ListType, Type


def merge(kind: Type, live: Any, applied: Any) -> Any:
    """`live` merged with `applied`. Null clears an atomic value and leaves other values unchanged."""
    if isinstance(live, dict) and (isinstance(applied, dict) or applied is None):
        split = kind.map
        if split is None or split.atomic or not (live or applied):
            return applied
        merged = live.copy()
        fields, other = split.fields, split.element
        for key, value in (applied or {}).items():
            field = fields.get(key)
            inner = field[1] if field is not None else other
            if inner is not None:
                plain = type(value) is str or key not in merged
                merged[key] = value if plain else merge(inner, merged[key], value)
        return merged
    if isinstance(live, list) and (isinstance(applied, list) or applied is None):
        items = kind.list
        if items is None or items.atomic or not (live or applied):
            return applied
        return _merge_lists(items, live, applied or [])
    return applied


def _merge_lists(items: ListType, live: list[Any], applied: list[Any]) -> list[Any]:
    """Merges keyed lists or sets. The order is that of `applied`; elements only in `live` keep their place."""
    live_names = [items.name(item) for item in live]
    applied_names = [items.name(item) for item in applied]
    by_name = dict(zip(applied_names, applied, strict=True))
    present: dict[str, Any] = {}
    for name, item in zip(live_names, live, strict=True):
        present[name] = None if name in present else item

    merged: list[Any] = []
    done: set[str] = set()
    shared = iter([name for name in applied_names if name in present])
    expected = next(shared, None)

    def take(name: str) -> None:
        item = by_name[name]
        merged.append(merge(items.element, present[name], item) if name in present else item)
        done.add(name)

    left = right = 0
    while left < len(live) or right < len(applied):
        if left < len(live) and right < len(applied):
            name = live_names[left]
            if name == applied_names[right]:
                take(name)
                left, right, expected = left + 1, right + 1, next(shared, None)
                continue
            if name in by_name and expected is not None and name != expected:
                left += 1  # The item is placed where `applied` has it.
                continue
        if left < len(live):
            name = live_names[left]
            if name not in by_name:
                merged.append(live[left])
                left += 1
                continue
            if name in done:
                left += 1
        if right < len(applied):
            name = applied_names[right]
            take(name)
            right += 1
            if name == expected:
                expected = next(shared, None)
    return merged


def remove(kind: Type, value: Any, fields: Set) -> Any:
    """`value` without the members of `fields`. An emptied container becomes null."""
    if isinstance(value, dict):
        split = kind.map
        if not value or split is None or split.atomic:
            return None
        kept: dict[str, Any] = {}
        for key, inner in value.items():
            element = "f:" + key
            if element not in fields:
                kept[key] = inner
            elif not holds(fields, element):
                child = split.child(key)
                kept[key] = remove(child[1], inner, below(fields, element)) if child is not None else inner
        return kept or None
    if isinstance(value, list):
        items = kind.list
        if not value or items is None or items.atomic:
            return None
        rest = []
        for item in value:
            element = items.name(item)
            if element not in fields:
                rest.append(item)
            elif not holds(fields, element):
                rest.append(remove(items.element, item, below(fields, element)))
        return rest or None
    return value
