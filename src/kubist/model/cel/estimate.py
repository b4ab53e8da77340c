"""Static cost estimate of an expression, from the maximum sizes that the schema allows.

runtime_cost.py and interpreter.py count the actual cost. Change them together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kubist.model.cel import call_costs
from kubist.model.cel.ast import (
    ACCU,
    Bind,
    Call,
    Comprehension,
    Ident,
    ListNode,
    Literal,
    MapNode,
    Node,
    Select,
    StructNode,
)
from kubist.model.cel.call_costs import MAX, ONE, UNKNOWN, ZERO, Range
from kubist.model.cel.types import Type

_SCALARS = frozenset(("bool", "double", "duration", "int", "timestamp", "uint"))


Path = tuple[str, ...]
SizeOf = Callable[[Path], "int | None"]
"""Maximum number of elements (or characters) of the value at a path, from its schema."""


class Entry(NamedTuple):
    """Sizes of the keys and values of a container."""

    container: str
    key: Range
    value: Range


def estimate(node: Node, size_of: SizeOf) -> Range:
    """Cost of a checked expression."""
    return Coster(size_of).cost(node)


class _Local:
    __slots__ = ("entry", "path", "size")

    def __init__(self, path: Path, size: Range | None, entry: Entry | None = None) -> None:
        self.path, self.size, self.entry = path, size, entry


class Coster:
    def __init__(self, size_of: SizeOf) -> None:
        self.size_of = size_of
        self.paths: dict[int, Path] = {}
        self.sizes: dict[int, Range] = {}
        self.entries: dict[int, Entry] = {}
        self.locals: dict[str, list[_Local]] = {}

    def local(self, name: str) -> _Local | None:
        stack = self.locals.get(name)
        return stack[-1] if stack else None

    def push(self, name: str, local: _Local) -> None:
        self.locals.setdefault(name, []).append(local)

    def pop(self, name: str) -> None:
        self.locals[name].pop()

    def path(self, node: Node) -> Path:
        if isinstance(node, Ident) and (local := self.local(node.name)) is not None:
            return local.path
        return self.paths.get(id(node), ())

    def size(self, node: Node) -> Range | None:
        size = self.sizes.get(id(node))
        if size is not None:
            return size
        if (known := _literal_size(node)) is not None:
            return Range(known, known)
        path = self.path(node)
        if path and (most := self.size_of(path)) is not None:
            self.sizes[id(node)] = Range(0, most)
            return self.sizes[id(node)]
        if _scalar(node.type):
            return ONE
        if isinstance(node, Ident) and (local := self.local(node.name)) is not None:
            return local.size
        return None

    def size_or_unknown(self, node: Node) -> Range:
        size = self.size(node)
        return UNKNOWN if size is None else size

    def entry(self, node: Node) -> Entry | None:
        entry = self.entries.get(id(node))
        if entry is not None:
            return entry
        if isinstance(node, Ident) and (local := self.local(node.name)) is not None:
            return local.entry
        return None

    def cost(self, node: Node) -> Range:
        match node:
            case Literal():
                return ZERO
            case Ident():
                local = self.local(node.name)
                self.paths[id(node)] = local.path if local is not None else (node.name,)
                return ONE
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListNode():
                return self._list(node)
            case MapNode():
                return self._map(node)
            case StructNode():
                total = Range(40, 40)
                for _, value in node.fields:
                    total = total.plus(self.cost(value))
                return total
            case Comprehension():
                return self._comprehension(node)
            case Bind():
                return self._bind(node)
        return ZERO

    def _select(self, node: Select) -> Range:
        if node.type.kind == "type":
            self.paths[id(node)] = (node.field,)
            return ONE
        total = self.cost(node.operand)
        if node.test:
            return total
        if node.operand.type.kind in ("map", "object", "param"):
            total = total.plus(ONE)
        self.paths[id(node)] = (*self.path(node.operand), node.field)
        return total

    def _list(self, node: ListNode) -> Range:
        total = Range(10, 10)
        item = Range(MAX if node.elements else 0, 0)
        for element in node.elements:
            total = total.plus(self.cost(element))
            item = item.union(self.size_or_unknown(element))
        self.entries[id(node)] = Entry("list", ONE, item)
        return total

    def _map(self, node: MapNode) -> Range:
        total = Range(30, 30)
        start = MAX if node.entries else 0
        key_size, value_size = Range(start, 0), Range(start, 0)
        for key, value in node.entries:
            total = total.plus(self.cost(key)).plus(self.cost(value))
            key_size = key_size.union(self.size_or_unknown(key))
            value_size = value_size.union(self.size_or_unknown(value))
        self.entries[id(node)] = Entry("map", key_size, value_size)
        return total

    def _bind(self, node: Bind) -> Range:
        total = Range(10, 10).plus(self.cost(node.value))
        self.push(node.name, _Local(self.path(node.value), self.size(node.value), self.entry(node.value)))
        total = total.plus(self.cost(node.body))
        self.pop(node.name)
        self._copy(node, node.body)
        return total

    def _copy(self, target: Node, source: Node) -> None:
        if (size := self.size(source)) is not None:
            self.sizes[id(target)] = size
        if (entry := self.entry(source)) is not None:
            self.entries[id(target)] = entry

    def _comprehension(self, node: Comprehension) -> Range:
        total = self.cost(node.range).plus(self.cost(node.accu_init))
        init = node.accu_init
        self.push(ACCU, _Local(self.path(init), self.size(init), self.entry(init)))
        entry, path = self.entry(node.range), self.path(node.range)
        is_list = (entry.container if entry is not None else node.range.type.kind) == "list"
        key = _Local((*path, "@indices" if is_list else "@keys"), entry.key if entry else None)
        value = _Local((*path, "@items" if is_list else "@values"), entry.value if entry else None)
        if node.var2:
            self.push(node.var, key)
            self.push(node.var2, value)
        else:
            self.push(node.var, value if is_list else key)
        per_item = self.cost(node.condition).plus(self.cost(node.step))
        self.pop(node.var)
        if node.var2:
            self.pop(node.var2)
        total = total.plus(self.cost(node.result))
        self.pop(ACCU)
        count = self.size_or_unknown(node.range)
        total = total.plus(count.times(per_item))
        if isinstance(init, Literal):
            if (size := self.size(init)) is not None:
                self.sizes[id(node)] = size
        elif isinstance(init, (ListNode, MapNode)):
            self.sizes[id(node)] = count
            if (step := self.entry(node.step)) is not None:
                self.entries[id(node)] = step
        return total

    def _call(self, node: Call) -> Range:
        if node.function == "dyn":
            total = ONE.plus(self.cost(node.args[0]))
            self._copy(node, node.args[0])
            return total
        args = node.args
        costs = [self.cost(arg) for arg in args]
        overloads = node.overloads
        target_cost = self.cost(node.target) if node.target is not None else ZERO
        best = Range(MAX, 0)
        result: Range | None = None
        for overload in overloads:
            cost, size = call_costs.estimate(self, node, overload, costs)
            best = best.union(cost)
            if size is not None:
                result = size if result is None else result.union(size)
            if overload in ("index_list", "index_map"):
                entry = self.entry(args[0])
                result = entry.value if entry is not None else None
                inner = "@items" if overload == "index_list" else "@values"
                self.paths[id(node)] = (*self.path(args[0]), inner)
            if result is None:
                result = self.size(node)
        if result is not None:
            self.sizes[id(node)] = result
        return target_cost.plus(best)

    def join_entries(self, node: Node, one: Node, other: Node) -> None:
        """A value that is one or both of two containers has the entry sizes of both."""
        first, second = self.entry(one), self.entry(other)
        if first is not None and second is not None:
            self.entries[id(node)] = Entry(
                first.container, first.key.union(second.key), first.value.union(second.value)
            )

    def element(self, node: Node) -> tuple[Type, Range] | None:
        """Type and size of the elements of a list; None for other types."""
        if node.type.kind != "list":
            return None
        path = self.path(node)
        if path and path[0] != ACCU:
            most = self.size_of((*path, "@items"))
            if most is not None:
                return node.type.params[0], Range(0, most)
        return node.type.params[0], UNKNOWN


def _literal_size(node: Node) -> int | None:
    match node:
        case Literal():
            return len(node.value) if isinstance(node.value, (str, bytes)) else 1
        case ListNode():
            return len(node.elements)
        case MapNode():
            return len(node.entries)
    return None


def _scalar(type_: Type) -> bool:
    if type_.kind == "opaque" and type_.name == "optional_type":
        return _scalar(type_.params[0])
    return type_.kind in _SCALARS
