"""Field set of the creator: all fields of the object except zero values and never-owned fields.

Rule: the result equals a comparison with an empty object (`compare.py`), without the fields that this endpoint never
sets and the fields that nobody owns. `tests/patch/apply/test_created.py` compares both.

Optimisation: each schema gets a function that caches the result by shape, as in `whole.py`.

Gain: 88,000 instructions instead of 191,000 for a pod, of about a million for its create
(`benchmarks/optimisations.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubist.model.patch.apply.compare import changed
from kubist.model.patch.apply.empty import empty
from kubist.model.patch.apply.managers import NEVER_OWNED
from kubist.model.patch.apply.sets import LEAF, SELF, Set, dotted, is_member, left_of
from kubist.model.patch.apply.typed import MapType, Type, remembered_shapes, type_of
from kubist.model.patch.apply.whole import made, of_leaf
from kubist.model.schema.node import UNSET, Schema, kept

Walk = Callable[[Any], Set | None]
"""Function from a value to its field set node. None: neither the value nor any field below it is owned."""
Shape = tuple[Set, list[tuple[str, str, Walk]]]
"""Same as in `whole.py`."""


def creator(schema: Schema, reset: tuple[str, ...]) -> Walk:
    """Function for the creator's field set. `reset` has the fields that this endpoint never sets (resetFields)."""
    made = _creators(schema)
    walk = made.get(reset)
    if walk is None:
        split = type_of(schema).map
        assert split is not None
        walk = made[reset] = _of_maps(split, empty(schema), dotted(*reset), NEVER_OWNED)
    return walk


@kept
def _creators(_: Schema) -> dict[tuple[str, ...], Walk]:
    """Results of `creator`, by the fields that strategies name."""
    return {}


def _walk(kind: Type, before: Any, reset: Set | None, never: Set | None) -> Walk:
    """Function for values whose zero value is `before` (UNSET: absent), with the nodes of both sets for this value."""
    whole, split = kind.whole or made(kind), kind.map
    if reset is never is None:
        if before is UNSET:
            return whole
        if before is None:
            return lambda of: None if of is None else _inside(whole(of))

    def plainly(of: Any) -> Set | None:
        node = whole(of) if before is UNSET else changed(kind, before, of)
        if node is not None and reset is not None:
            node = left_of(node, reset, recursive=True)
        if node is not None and never is not None:
            node = left_of(node, never, recursive=False)
        return node

    if split is None or split.atomic or (reset is not None and is_member(reset)):
        return plainly
    if before is not UNSET and type(before) is not dict:
        return plainly
    return _of_maps(split, before, reset or LEAF, never, plainly)


def _inside(node: Set) -> Set | None:
    """Node of the fields below a value that replaced null."""
    if node:
        node = node.copy()
        del node[SELF]
        return node or None
    return node


def _of_maps(
    split: MapType, before: Any, reset: Set, never: Set | None, otherwise: Walk | None = None
) -> Walk:
    """Function for maps of a type. `otherwise` handles values that are not maps."""
    member = before is UNSET and (never is None or not is_member(never))
    least = 1 if member else 0
    nothing = LEAF if member else None
    shapes = remembered_shapes()

    def of_map(of: Any) -> Set | None:
        if otherwise is not None and type(of) is not dict:
            return otherwise(of)
        names = tuple(of)
        node, deeper = shapes.get(names) or shape(names)
        if deeper:
            node = node.copy()
            for name, element, walk in deeper:
                below = walk(of[name])
                if below is None:
                    del node[element]
                else:
                    node[element] = below
        return node if len(node) > least else nothing

    def shape(names: tuple[str, ...]) -> Shape:
        node: Set = {SELF: LEAF} if member else {}
        deeper = []
        for name in sorted(names):
            child = split.child(name)
            if child is None:
                continue
            element, kind = child
            had = before.get(name, UNSET) if before else UNSET
            walk = _walk(kind, had, reset.get(element), never.get(element) if never else None)
            if had is not UNSET or kind.whole is not of_leaf:
                node[element] = LEAF
                deeper.append((name, element, walk))
            elif walk(None) is not None:
                node[element] = LEAF
        shapes[names] = node, deeper
        return node, deeper

    return of_map
