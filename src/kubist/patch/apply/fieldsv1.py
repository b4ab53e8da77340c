"""FieldsV1 as clients send it: read into a set, or refused. What the server itself wrote needs no reading."""

from __future__ import annotations

from typing import Any

from kubist.patch.apply.paths import canonical
from kubist.patch.apply.sets import LEAF, SELF, Set, ordered, union_all


def parse(raw: Any) -> Set:
    """The set; a `ValueError` if there is none in it. Elements of unknown kinds are left out."""
    if raw is None:
        return LEAF
    node, _ = _parse(raw)
    return node


def _parse(raw: Any) -> tuple[Set, bool]:
    """What is below a node, and whether the node says itself to be a member."""
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
