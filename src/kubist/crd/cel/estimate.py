"""What an expression may cost at most, before it is ever evaluated: from the sizes that its schema allows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from kubist.crd.cel.ast import (
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
from kubist.crd.cel.runtimecost import REGEX, TRAVERSAL
from kubist.crd.cel.types import Type

MAX = (1 << 64) - 1
_SCALARS = frozenset(("bool", "double", "duration", "int", "timestamp", "uint"))


class Range(NamedTuple):
    """From least to most, of a size or a cost."""

    least: int
    most: int

    def plus(self, other: Range) -> Range:
        return Range(min(self.least + other.least, MAX), min(self.most + other.most, MAX))

    def times(self, other: Range) -> Range:
        return Range(min(self.least * other.least, MAX), min(self.most * other.most, MAX))

    def scaled(self, factor: float) -> Range:
        return Range(_scale(self.least, factor), _scale(self.most, factor))

    def union(self, other: Range) -> Range:
        return Range(min(self.least, other.least), max(self.most, other.most))


def _scale(value: int, factor: float) -> int:
    scaled = float(value) * factor
    return MAX if scaled >= 18446744073709551616.0 or (scaled <= 0 and value > 0) else math.ceil(scaled)


UNKNOWN = Range(0, MAX)
ONE = Range(1, 1)
ZERO = Range(0, 0)

Path = tuple[str, ...]
SizeOf = Callable[[Path], "int | None"]
"""The most elements (or characters) that a value at a path may have, as its schema says."""


class Entry(NamedTuple):
    """Sizes of the keys and values of a container."""

    container: str
    key: Range
    value: Range


def estimate(node: Node, size_of: SizeOf) -> Range:
    """The cost of a checked expression."""
    return _Coster(size_of).cost(node)


class _Local:
    __slots__ = ("entry", "path", "size")

    def __init__(self, path: Path, size: Range | None, entry: Entry | None = None) -> None:
        self.path, self.size, self.entry = path, size, entry


class _Coster:
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
        found = self.sizes.get(id(node))
        if found is not None:
            return found
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
        found = self.size(node)
        return UNKNOWN if found is None else found

    def entry(self, node: Node) -> Entry | None:
        found = self.entries.get(id(node))
        if found is not None:
            return found
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
            cost, size = self._overload(node, overload, costs)
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

    def _element(self, node: Node) -> tuple[Type, Range] | None:
        """The type and size of the elements of a list."""
        if node.type.kind != "list":
            return None
        path = self.path(node)
        if path and path[0] != ACCU:
            most = self.size_of((*path, "@items"))
            if most is not None:
                return node.type.params[0], Range(0, most)
        return node.type.params[0], UNKNOWN

    def _overload(self, node: Call, overload: str, costs: list[Range]) -> tuple[Range, Range | None]:
        """The cost of a call, its arguments included, and the size of its result if that is known."""
        total = ZERO
        for cost in costs:
            total = total.plus(cost)
        special = self._library(node, overload)
        if special is not None:
            return special[0].plus(total), special[1]
        args, target = node.args, node.target
        match overload:
            case "string_format" if target is not None:
                return self.size_or_unknown(target).scaled(TRAVERSAL).plus(total), None
            case "string_to_bytes":
                size = self.size_or_unknown(args[0])
                return size.scaled(TRAVERSAL).plus(total), Range(size.least, min(size.most * 4, MAX))
            case "bytes_to_string":
                size = self.size_or_unknown(args[0])
                return size.scaled(TRAVERSAL).plus(total), Range(size.least // 4, size.most)
            case "strings_quote":
                size = self.size_or_unknown(args[0])
                longest = Range(size.least + 2, min(size.most * 2 + 2, MAX))
                return size.scaled(TRAVERSAL).plus(total), longest
            case "starts_with_string" | "ends_with_string":
                return self.size_or_unknown(args[0]).scaled(TRAVERSAL).plus(total), None
            case "in_list":
                return self.size_or_unknown(args[1]).plus(total), None
            case "matches_string" if target is not None:
                text = self.size_or_unknown(target).plus(ONE).scaled(TRAVERSAL)
                pattern = self.size_or_unknown(args[0]).scaled(REGEX)
                return text.times(pattern).plus(total), None
            case "contains_string" if target is not None:
                text = self.size_or_unknown(target).scaled(TRAVERSAL)
                part = self.size_or_unknown(args[0]).scaled(TRAVERSAL)
                return text.times(part).plus(total), None
            case "logical_or" | "logical_and":
                return Range(costs[0].least, costs[0].plus(costs[1]).most), None
            case "conditional":
                return self._conditional(node, costs)
            case "add_string" | "add_bytes" | "add_list":
                return self._added(node, overload, total)
        if overload in ("equals", "not_equals") or (
            overload.endswith(("_string", "_bytes"))
            and node.function
            in (
                "_<_",
                "_<=_",
                "_>_",
                "_>=_",
            )
        ):
            smallest = min(self.size_or_unknown(args[0]).most, self.size_or_unknown(args[1]).most)
            return Range(1 if smallest > 0 else 0, smallest).scaled(TRAVERSAL).plus(total), None
        return ONE.plus(total), None

    def _conditional(self, node: Call, costs: list[Range]) -> tuple[Range, Range | None]:
        size = self.size_or_unknown(node.args[1]).union(self.size_or_unknown(node.args[2]))
        one, other = self.entry(node.args[1]), self.entry(node.args[2])
        if one is not None and other is not None:
            self.entries[id(node)] = Entry(
                one.container, one.key.union(other.key), one.value.union(other.value)
            )
        return costs[0].plus(costs[1].union(costs[2])), size

    def _added(self, node: Call, overload: str, total: Range) -> tuple[Range, Range | None]:
        size = self.size_or_unknown(node.args[0]).plus(self.size_or_unknown(node.args[1]))
        one, other = self.entry(node.args[0]), self.entry(node.args[1])
        if one is not None and other is not None:
            self.entries[id(node)] = Entry(
                one.container, one.key.union(other.key), one.value.union(other.value)
            )
        if overload == "add_list":
            return ONE.plus(total), size
        return size.scaled(TRAVERSAL).plus(total), size

    def _library(self, node: Call, overload: str) -> tuple[Range, Range | None] | None:
        """Calls of Kubernetes' libraries; None for others."""
        name, args, target = node.function, node.args, node.target
        if name in _FIXED:
            return Range(_FIXED[name], _FIXED[name]), None
        if name in ("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf") and target is not None:
            size = self.size_or_unknown(target)
            element = self._element(target)
            if element is None:
                return size.scaled(TRAVERSAL), None
            per_item = ONE
            if element[0].kind in ("string", "bytes"):
                per_item = per_item.plus(element[1].scaled(TRAVERSAL))
            return size.times(per_item), None
        if name in ("url", "lowerAscii", "upperAscii", "substring", "trim"):
            size = self.size_or_unknown(args[0] if target is None else target)
            return size.scaled(TRAVERSAL), size
        if name == "replace" and target is not None:
            return self._replace(target, args)
        if name == "split" and target is not None:
            size = self.size_or_unknown(target)
            most = size.most
            if len(args) > 1 and isinstance(args[1], Literal) and isinstance(args[1].value, int):
                most = args[1].value % (MAX + 1)
            return size.scaled(2 * TRAVERSAL), Range(0, most)
        if name == "join" and target is not None:
            return self._join(target, args)
        if name in ("find", "findAll") and target is not None:
            return self._find(name, target, args)
        if (
            name in ("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver")
            or overload == "string_to_ip"
        ):
            return self.size_or_unknown(args[0]).scaled(TRAVERSAL), None
        if name == "ip.isCanonical":
            return self.size_or_unknown(args[0]).scaled(2 * TRAVERSAL), None
        if overload == "cidr_ip":
            return ONE, None
        if name in ("containsIP", "containsCIDR"):
            address = Range(4, 16)
            cost = address.plus(address).scaled(TRAVERSAL)
            if name == "containsCIDR":
                cost = cost.plus(address.scaled(TRAVERSAL)).plus(ONE)
            if overload.endswith("_string"):
                cost = cost.plus(self.size_or_unknown(args[0]).scaled(TRAVERSAL))
            return cost, None
        if name == "validate":
            return self.size_or_unknown(args[0]).scaled(TRAVERSAL).scaled(128 * REGEX), None
        if name == "_==_" and args[0].type == args[1].type and args[0].type.kind == "opaque":
            return self._opaque_equality(args)
        if name.startswith("sets."):
            sizes = self.size_or_unknown(args[0]).times(self.size_or_unknown(args[1]))
            return sizes.scaled(2 if name == "sets.equivalent" else 1).plus(ONE), None
        return self._list_function(name, overload, target, args)

    def _opaque_equality(self, args: list[Node]) -> tuple[Range, Range | None] | None:
        name = args[0].type.name
        if name == "kubernetes.NamedFormat":
            return Range(1, 64).scaled(TRAVERSAL), None
        if name == "kubernetes.URL":
            size = self.size(args[1])
            return Range(1, size.most if size is not None else 1).scaled(TRAVERSAL), None
        return (ONE, None) if name != "optional_type" else None

    def _replace(self, target: Node, args: list[Node]) -> tuple[Range, Range | None]:
        size, old, new = (
            self.size_or_unknown(target),
            self.size_or_unknown(args[0]),
            self.size_or_unknown(args[1]),
        )
        most = most_kept = 0
        if old.least == 0:
            most, most_kept = min(size.most + 1, MAX), size.most
        elif new.most <= old.least:
            most_kept = size.most
        else:
            most = math.ceil(size.most / old.least)
        least = least_kept = 0
        if old.most == 0:
            least, least_kept = min(size.least + 1, MAX), size.least
        elif old.most <= new.least:
            least_kept = size.least
        else:
            least = math.ceil(size.least / old.most)
        result = Range(least, most).times(new).plus(Range(least_kept, most_kept))
        return size.scaled(2 * TRAVERSAL), result

    def _join(self, target: Node, args: list[Node]) -> tuple[Range, Range | None]:
        count = self.size_or_unknown(target)
        element = self._element(target)
        size = count.times(element[1]) if element is not None else ZERO
        if args:
            separators = Range(max(count.least - 1, 0), max(count.most - 1, 0))
            size = size.plus(separators.times(self.size_or_unknown(args[0])))
        return size.scaled(TRAVERSAL), size

    def _find(self, name: str, target: Node, args: list[Node]) -> tuple[Range, Range | None]:
        size = self.size_or_unknown(target)
        cost = size.plus(ONE).scaled(TRAVERSAL).times(self.size_or_unknown(args[0]).scaled(REGEX))
        if name == "find":
            return cost, Range(0, size.most)
        return cost, size

    def _list_function(
        self, name: str, overload: str, target: Node | None, args: list[Node]
    ) -> tuple[Range, Range | None] | None:
        if name == "lists.range":
            count = _integer(args[0], MAX)
            size = Range(count, count)
            return size.plus(Range(11, 11)), size
        if target is None:
            return None
        size = self.size_or_unknown(target)
        if name == "reverse":
            return size.plus(Range(11, 11)), size
        if name == "slice":
            count = (_integer(args[1], size.most) - _integer(args[0], 0)) % (MAX + 1)
            return Range(count, count).plus(Range(11, 11)), Range(count, count)
        if name == "flatten":
            depth = _integer(args[0], MAX) if args else 1
            return size.scaled(float(depth)).plus(Range(11, 11)), size
        if name == "distinct":
            pairs = size.times(size)
            return pairs.scaled(2).plus(Range(11, 11)), pairs
        if name in ("sort", "@sortByAssociatedKeys"):
            text = "_string_" in overload or "_bytes_" in overload
            compared = size if name == "sort" else self.size_or_unknown(args[0])
            pairs = compared.times(compared)
            return pairs.scaled(2 + (TRAVERSAL if text else 0)).plus(Range(11, 11)), pairs
        return None


_FIXED = {
    "check": 350_000,
    **dict.fromkeys(
        (
            "serviceAccount",
            "path",
            "group",
            "resource",
            "subresource",
            "namespace",
            "name",
            "allowed",
            "reason",
            "error",
            "errored",
            "masked",
            "prefixLength",
            "family",
            "isUnspecified",
            "isLoopback",
            "isLinkLocalMulticast",
            "isLinkLocalUnicast",
            "isGlobalUnicast",
            "format.named",
            "sign",
            "asInteger",
            "isInteger",
            "asApproximateFloat",
            "isGreaterThan",
            "isLessThan",
            "compareTo",
            "add",
            "sub",
            "major",
            "minor",
            "patch",
            "getScheme",
            "getHostname",
            "getHost",
            "getPort",
            "getEscapedPath",
            "getQuery",
        ),
        1,
    ),
}


def _integer(node: Node, default: int) -> int:
    """The number that a node is; what it may be at most if it is none."""
    if isinstance(node, Literal) and isinstance(node.value, int) and not isinstance(node.value, bool):
        return int(node.value)
    return default


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
