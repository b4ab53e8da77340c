"""Field sets in FieldsV1 form: `{"f:spec": {"f:replicas": {}}}` contains `.spec.replicas`.

An empty node is a member. A node with content is a member if it also contains `.`. Sets are sorted and
immutable: every function returns a new set that shares unchanged parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from kubist.model.patch.apply.paths import Element, order

Set = dict[Element, Any]

LEAF: Set = {}
"""Member without fields below it: a constant of the process, which nothing changes."""

SELF = "."

Path = tuple[Element, ...]


def ordered(node: Set) -> Set:
    """Node with its elements sorted. Nodes below must be sorted already."""
    if len(node) < 2:
        return node
    if max(node) < "g":  # Only fields: they sort by their strings.
        return {element: node[element] for element in sorted(node)}
    return {element: node[element] for element in sorted(node, key=order)}


def is_member(node: Set) -> bool:
    return not node or SELF in node


def has(fields: Set, path: Path) -> bool:
    node = fields
    for element in path:
        if element not in node:
            return False
        node = node[element]
    return is_member(node)


def of_paths(*paths: Path) -> Set:
    made: list[Set] = []
    for path in paths:
        node: Set = LEAF
        for element in reversed(path):
            node = {element: node}
        made.append(node)
    return union_all(made)


@lru_cache(maxsize=1024)
def dotted(*paths: str) -> Set:
    """Set of plain fields, such as `metadata.name`."""
    return of_paths(*(tuple("f:" + name for name in path.split(".")) for path in paths))


def union_all(parts: Sequence[Set]) -> Set:
    """Union of many sets, joined in pairs, so that a member is copied O(log n) times."""
    joined = list(parts)
    while len(joined) > 1:
        odd = joined[len(joined) & ~1 :]
        joined = [union(*pair) for pair in zip(joined[::2], joined[1::2], strict=False)] + odd
    return joined[0] if joined else LEAF


def union(left: Set, right: Set) -> Set:
    if not left or left is right:
        return right
    if not right:
        return left
    if len(left) < len(right):
        left, right = right, left
    made: Set | None = None
    grown = False
    for element, other in right.items():
        mine = left.get(element)
        if mine is None:
            grown = True
            joined = other
        elif mine and other:
            joined = union(mine, other)
        elif mine:
            joined = mine if SELF in mine else {SELF: LEAF, **mine}
        elif other:
            joined = other if SELF in other else {SELF: LEAF, **other}
        else:
            continue
        if joined is not mine:
            made = made or left.copy()
            made[element] = joined
    if made is None:
        return left
    return ordered(made) if grown else made


def intersection(left: Set, right: Set) -> Set:
    if left is right:
        return left
    if len(right) < len(left):
        left, right = right, left
    made: Set = {}
    for element, mine in left.items():
        other = right.get(element)
        if other is None:
            continue
        below = intersection(mine, other) if mine and other else LEAF
        if below and (len(below) > 1 or SELF not in below):
            made[element] = below
        elif (not mine or SELF in mine) and (not other or SELF in other):
            made[element] = LEAF
    return made


def difference(left: Set, right: Set) -> Set:
    """Members of `left` that are not in `right`. A parent does not include its children."""
    return _subtract(left, right, recursive=False)


def recursive_difference(left: Set, right: Set) -> Set:
    """`left` without the members of `right` and everything below them."""
    return _subtract(left, right, recursive=True)


def _subtract(left: Set, right: Set, recursive: bool) -> Set:
    if not right or not left:
        return left
    made: Set | None = None
    for element in right if len(right) < len(left) else left:
        mine, other = left.get(element), right.get(element)
        if mine is None or other is None or element == SELF:
            continue
        rest = left_of(mine, other, recursive=recursive)
        if rest is mine:
            continue
        if made is None:
            made = left.copy()
        if rest is None:
            del made[element]
        else:
            made[element] = rest
    return left if made is None else made


def left_of(mine: Set, other: Set, *, recursive: bool) -> Set | None:
    """Rest of a node after subtracting another node. None: empty."""
    taken = not other or SELF in other
    if taken and (recursive or not mine):
        return None
    below = _subtract(mine, other, recursive)
    if taken and SELF in below:
        below = below.copy()
        del below[SELF]
    if not below:
        return None if mine else mine
    if len(below) == 1 and SELF in below:
        return LEAF
    return below


def paths(fields: Set, prefix: Path = ()) -> Iterator[Path]:
    """Paths of all members: for each node its own members first, then those below."""
    for element, node in fields.items():
        if element != SELF and is_member(node):
            yield (*prefix, element)
    for element, node in fields.items():
        if node:
            yield from paths(node, (*prefix, element))
