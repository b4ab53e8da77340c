"""Syntax tree of an expression. The checker sets the type and overloads of each node."""

from __future__ import annotations

from typing import Any

from kubist.model.cel.types import DYN, Type


class Node:
    """A node of the tree. `at` is its offset in the text."""

    __slots__ = ("at", "overloads", "type")

    def __init__(self, at: int) -> None:
        self.at = at
        self.type: Type = DYN
        self.overloads: tuple[str, ...] = ()
        """For a call: the IDs of the overloads that match the argument types."""


class Literal(Node):
    __slots__ = ("value",)

    def __init__(self, at: int, value: Any) -> None:
        super().__init__(at)
        self.value = value


class Ident(Node):
    __slots__ = ("name",)

    def __init__(self, at: int, name: str) -> None:
        super().__init__(at)
        self.name = name


class Select(Node):
    """`operand.field`. With `test`: whether the field is present (the macro `has`)."""

    __slots__ = ("field", "operand", "test")

    def __init__(self, at: int, operand: Node, field: str, test: bool = False) -> None:
        super().__init__(at)
        self.operand = operand
        self.field = field
        self.test = test


class Call(Node):
    __slots__ = ("args", "function", "target")

    def __init__(self, at: int, function: str, args: list[Node], target: Node | None = None) -> None:
        super().__init__(at)
        self.function = function
        self.args = args
        self.target = target


class ListNode(Node):
    __slots__ = ("elements", "optional")

    def __init__(self, at: int, elements: list[Node], optional: frozenset[int] = frozenset()) -> None:
        super().__init__(at)
        self.elements = elements
        self.optional = optional


class MapNode(Node):
    __slots__ = ("entries", "optional")

    def __init__(
        self, at: int, entries: list[tuple[Node, Node]], optional: frozenset[int] = frozenset()
    ) -> None:
        super().__init__(at)
        self.entries = entries
        self.optional = optional


class StructNode(Node):
    """`Name{field: value}`."""

    __slots__ = ("colons", "fields", "name", "optional")

    def __init__(
        self,
        at: int,
        name: str,
        fields: list[tuple[str, Node]],
        colons: list[int],
        optional: frozenset[int] = frozenset(),
    ) -> None:
        super().__init__(at)
        self.name = name
        self.fields = fields
        self.colons = colons
        """Offset of the colon of each field. Errors about the field point at it."""
        self.optional = optional


class Comprehension(Node):
    """A loop over a list or map, produced by macros. `macro` is "all", "exists" or "loop"."""

    __slots__ = ("accu_init", "condition", "macro", "range", "result", "step", "var", "var2")

    def __init__(
        self,
        at: int,
        macro: str,
        range_: Node,
        var: str,
        var2: str,
        accu_init: Node,
        condition: Node,
        step: Node,
        result: Node,
    ) -> None:
        super().__init__(at)
        self.macro = macro
        self.range = range_
        self.var = var
        self.var2 = var2
        self.accu_init = accu_init
        self.condition = condition
        self.step = step
        self.result = result


class Bind(Node):
    """Binds a value to a name within an expression. Produced by optMap, sortBy and cel.bind."""

    __slots__ = ("body", "name", "value")

    def __init__(self, at: int, name: str, value: Node, body: Node) -> None:
        super().__init__(at)
        self.name = name
        self.value = value
        self.body = body


ACCU = "@result"
"""Name of the accumulator variable of comprehensions."""


def children(node: Node) -> list[Node]:
    match node:
        case Select():
            return [node.operand]
        case Call():
            return ([node.target] if node.target is not None else []) + node.args
        case ListNode():
            return node.elements
        case MapNode():
            return [part for entry in node.entries for part in entry]
        case StructNode():
            return [value for _, value in node.fields]
        case Comprehension():
            return [node.range, node.accu_init, node.condition, node.step, node.result]
        case Bind():
            return [node.value, node.body]
    return []
