"""Field set of a whole value that was added or removed: the value and everything below it.

Rule: a map that is not atomic has a node for each key, a list that is not atomic a node for each item; all other values
are leaves. `plainly` in `tests/patch/apply/test_whole.py` is this rule in 20 lines, and the tests compare both.

Optimisation: every type gets its own function on first use. Values of one shape (maps with the same keys in the same
order, and lists of such maps with the same identities) have the same node except for parts that are split further. Each
shape is therefore computed once.

Gain: the field set of a pod takes 86,000 instructions instead of 787,000 (`benchmarks/optimisations.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubist.model.patch.apply.sets import LEAF, SELF, Set
from kubist.model.patch.apply.typed import ListType, MapType, Type

Whole = Callable[[Any], Set]
Shape = tuple[Set, list[tuple[Any, str, Whole]]]
"""Node of a map with certain keys (or a list with certain items), and its variable parts: key (or index), path
element and function."""

LARGEST_SHAPE = 48
"""Maximum number of list items for which a shape is cached."""


def everything(kind: Type, of: Any) -> Set:
    """Node of a value and everything below it."""
    return (kind.whole or made(kind))(of)


def made(kind: Type) -> Whole:
    """Field set function of a type."""
    split, items = kind.map, kind.list
    maps = _of_maps(split) if split is not None and not split.atomic else None
    lists = _of_lists(items) if items is not None and not items.atomic else None

    def of_either(of: Any) -> Set:
        form = type(of)
        if form is dict and maps is not None:
            return maps(of)
        return lists(of) if form is list and lists is not None else LEAF

    kind.whole = of_either if maps is not None and lists is not None else maps or lists or of_leaf
    return kind.whole


def of_leaf(_of: Any) -> Set:
    """Field set function of types that are never split."""
    return LEAF


def members(split: MapType, of: dict[str, Any], names: tuple[str, ...]) -> Set:
    """Nodes of some keys of a map, by path element."""
    node, deeper = split.shapes.get(names) or _shape(split, names)
    node = node.copy()
    del node[SELF]
    for name, element, walk in deeper:
        node[element] = walk(of[name])
    return node


def _of_maps(split: MapType) -> Whole:
    shapes = split.shapes

    def of_map(of: Any) -> Set:
        if type(of) is not dict or not of:
            return LEAF
        names = tuple(of)
        node, deeper = shapes.get(names) or _shape(split, names)
        if not deeper:
            return node
        node = node.copy()
        for name, element, walk in deeper:
            node[element] = walk(of[name])
        return node

    return of_map


def _shape(split: MapType, names: tuple[str, ...]) -> Shape:
    """Computes and caches a shape."""
    node: Set = {SELF: LEAF}
    deeper = []
    for name in sorted(names):
        child = split.child(name)
        if child is not None:
            element, inner = child
            node[element] = LEAF
            walk = inner.whole or made(inner)
            if walk is not of_leaf:
                deeper.append((name, element, walk))
    split.shapes[names] = node, deeper
    return node, deeper


def elements(items: ListType, of: list[Any]) -> Set:
    """Nodes of the items of a list, by path element. Items that share a path element are not split."""
    node = _of_lists(items)(of).copy()
    del node[SELF]
    return node


def _of_lists(items: ListType) -> Whole:
    walk = items.element.whole or made(items.element)
    shapes = items.shapes

    def of_list(of: Any) -> Set:
        if type(of) is not list or not of:
            return LEAF
        if len(of) == 1:
            return {SELF: LEAF, items.name(of[0]): walk(of[0])}
        shape = items.shape(of) if len(of) <= LARGEST_SHAPE else None
        node, deeper = shapes.get(shape) or _items(items, of, shape)
        if not deeper:
            return node
        node = node.copy()
        for index, element, below in deeper:
            node[element] = below(of[index])
        return node

    return of_list


def _items(items: ListType, of: list[Any], shape: Any) -> Shape:
    """Computes the shape of a list with several items, and caches it unless `shape` is None."""
    walk, split = items.element.whole or made(items.element), items.element.map
    named, repeated = items.by_name(of)
    places = {id(item): index for index, item in enumerate(of)}
    node: Set = {SELF: LEAF}
    deeper = []
    for element, item in named.items():
        node[element] = LEAF
        if not item or walk is of_leaf or element in repeated:
            continue
        if type(item) is dict and split is not None:
            names = tuple(item)
            node[element], inside = split.shapes.get(names) or _shape(split, names)
            if not inside:
                continue
        deeper.append((places[id(item)], element, walk))
    if shape is not None:
        items.shapes[shape] = node, deeper
    return node, deeper
