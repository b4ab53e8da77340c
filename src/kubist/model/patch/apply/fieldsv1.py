"""FieldsV1 from clients, parsed and validated. Sets that the server wrote need no parsing."""

from __future__ import annotations

from typing import Any

from kubist.model.patch.apply.paths import canonical
from kubist.model.patch.apply.sets import LEAF, SELF, Set, ordered, union_all


def parse(raw: Any) -> Set:
    """Parsed field set. ValueError if `raw` is invalid. Path elements of unknown types are dropped."""
    if raw is None:
        return LEAF
    node, _ = _parse(raw)
    return node


def _parse(raw: Any) -> tuple[Set, bool]:
    """Node below an element, and whether the element itself is a member."""
    if raw is None:
        return LEAF, True
    if not isinstance(raw, dict):
        raise ValueError("a field set is an object")
    below: Set = {}
    spelled_twice: dict[str, list[Set]] = {}
    member = False
    for spelled, content in raw.items():
        if spelled == SELF:
            member = True
            continue
        element = canonical(spelled)
        if element is None:
            continue
        inner, inner_member = _parse(content)
        node = {SELF: LEAF, **inner} if inner and inner_member else inner
        if element in below:
            spelled_twice.setdefault(element, [{element: below[element]}]).append({element: node})
        else:
            below[element] = node
    for element, parts in spelled_twice.items():
        below[element] = union_all(parts)[element]
    return ordered(below), member
