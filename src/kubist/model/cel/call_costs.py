"""Estimated maximum cost and result size of calls, by function and overload. A call that is not listed costs 1. Ranges
of sizes and costs saturate at 2^64-1.

runtime_cost.py counts the actual costs. Change both together: an estimate must not be too low.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from kubist.model.cel.ast import Call, Literal, Node
from kubist.model.cel.runtime_cost import REGEX, TRAVERSAL

if TYPE_CHECKING:
    from kubist.model.cel.estimate import Coster

MAX = (1 << 64) - 1


class Range(NamedTuple):
    """Minimum and maximum of a size or a cost."""

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


Outcome = tuple[Range, "Range | None"]
"""Cost of the call itself, and the size of its result if known."""
Estimate = Callable[["Estimated"], "Outcome | None"]
"""Result of an estimator. None: the next estimator decides."""

LIST_COST = Range(11, 11)
ADDRESS = Range(4, 16)
FORMAT_PATTERN = 128
FORMAT_NAME = Range(1, 64)


class Estimated:
    """A call to estimate. `subject` is its target, or its first argument without a target."""

    __slots__ = ("args", "coster", "node", "overload", "subject", "target")

    def __init__(self, coster: Coster, node: Call, overload: str) -> None:
        self.coster = coster
        self.node = node
        self.overload = overload
        self.args = node.args
        self.target = node.target
        self.subject: Node = node.target if node.target is not None else node.args[0]

    def size(self, node: Node) -> Range:
        return self.coster.size_or_unknown(node)


def estimate(coster: Coster, node: Call, overload: str, costs: list[Range]) -> Outcome:
    """Cost of a call with one of its overloads, including its arguments, and the size of its result."""
    if overload in ("logical_or", "logical_and"):
        return Range(costs[0].least, costs[0].plus(costs[1]).most), None
    if overload == "conditional":
        first, second = node.args[1:]
        coster.join_entries(node, first, second)
        size = coster.size_or_unknown(first).union(coster.size_or_unknown(second))
        return costs[0].plus(costs[1].union(costs[2])), size
    total = ZERO
    for cost in costs:
        total = total.plus(cost)
    outcome: Outcome | None = None
    if node.target is not None or node.args:
        call = Estimated(coster, node, overload)
        for estimated in (BY_FUNCTION.get(node.function), BY_OVERLOAD.get(overload)):
            outcome = estimated(call) if outcome is None and estimated is not None else outcome
    own, size_ = outcome if outcome is not None else (ONE, None)
    return own.plus(total), size_


def _walked(factor: float = TRAVERSAL, *, kept: bool = False) -> Estimate:
    """Traverses the subject. `kept`: the result may be as large as the subject."""

    def walked(call: Estimated) -> Outcome:
        size = call.size(call.subject)
        return size.scaled(factor), size if kept else None

    return walked


def _first_argument(factor: float) -> Estimate:
    return lambda call: (call.size(call.args[0]).scaled(factor), None)


def _aggregated(call: Estimated) -> Outcome | None:
    """Traverses every element of a list; for strings and bytes also their content."""
    if call.target is None:
        return None
    size, element = call.size(call.target), call.coster.element(call.target)
    if element is None:
        return size.scaled(TRAVERSAL), None
    per_item = ONE
    if element[0].kind in ("string", "bytes"):
        per_item = per_item.plus(element[1].scaled(TRAVERSAL))
    return size.times(per_item), None


def _split(call: Estimated) -> Outcome | None:
    if call.target is None:
        return None
    size = call.size(call.target)
    most = size.most
    if len(call.args) > 1 and isinstance(call.args[1], Literal) and isinstance(call.args[1].value, int):
        most = call.args[1].value % (MAX + 1)
    return size.scaled(2 * TRAVERSAL), Range(0, most)


def _join(call: Estimated) -> Outcome | None:
    if call.target is None:
        return None
    count, element = call.size(call.target), call.coster.element(call.target)
    size = count.times(element[1]) if element is not None else ZERO
    if call.args:
        separators = Range(max(count.least - 1, 0), max(count.most - 1, 0))
        size = size.plus(separators.times(call.size(call.args[0])))
    return size.scaled(TRAVERSAL), size


def _replace(call: Estimated) -> Outcome | None:
    """Size of the result: the maximum assumes the most replacements, the minimum the fewest."""
    if call.target is None:
        return None
    size, old, new = (call.size(node) for node in (call.target, *call.args[:2]))
    most, most_kept = _replacements(size.most, old.least, shrinks=new.most <= old.least)
    least, least_kept = _replacements(size.least, old.most, shrinks=old.most <= new.least)
    result = Range(least, most).times(new).plus(Range(least_kept, most_kept))
    return size.scaled(2 * TRAVERSAL), result


def _replacements(size: int, part: int, *, shrinks: bool) -> tuple[int, int]:
    """Number of replacements in a text, and the length of the text that remains."""
    if part == 0:
        return min(size + 1, MAX), size
    return (0, size) if shrinks else (math.ceil(size / part), 0)


def _matched(result: Callable[[Range], Range | None]) -> Estimate:
    """Matches a pattern. The cost is the product of the text's and the pattern's size."""

    def matched(call: Estimated) -> Outcome | None:
        if call.target is None:
            return None
        size = call.size(call.target)
        pattern = call.size(call.args[0]).scaled(REGEX)
        return size.plus(ONE).scaled(TRAVERSAL).times(pattern), result(size)

    return matched


def _contains(call: Estimated) -> Outcome | None:
    if call.target is None:
        return None
    text, part = (call.size(node).scaled(TRAVERSAL) for node in (call.target, call.args[0]))
    return text.times(part), None


def _contains_address(call: Estimated) -> Outcome:
    cost = ADDRESS.plus(ADDRESS).scaled(TRAVERSAL)
    if call.node.function == "containsCIDR":
        cost = cost.plus(ADDRESS.scaled(TRAVERSAL)).plus(ONE)
    if call.overload.endswith("_string"):
        cost = cost.plus(call.size(call.args[0]).scaled(TRAVERSAL))
    return cost, None


def _ip(call: Estimated) -> Outcome | None:
    if call.overload == "cidr_ip":
        return ONE, None
    return (call.size(call.args[0]).scaled(TRAVERSAL), None) if call.overload == "string_to_ip" else None


def _validated(call: Estimated) -> Outcome:
    return call.size(call.args[0]).scaled(TRAVERSAL).scaled(FORMAT_PATTERN * REGEX), None


def _compared(call: Estimated) -> Outcome:
    smallest = min(call.size(call.args[0]).most, call.size(call.args[1]).most)
    return Range(1 if smallest > 0 else 0, smallest).scaled(TRAVERSAL), None


def _equal(call: Estimated) -> Outcome:
    one, other = call.args
    if one.type == other.type and one.type.kind == "opaque" and call.node.function == "_==_":
        match one.type.name:
            case "kubernetes.NamedFormat":
                return FORMAT_NAME.scaled(TRAVERSAL), None
            case "kubernetes.URL":
                size = call.coster.size(other)
                return Range(1, size.most if size is not None else 1).scaled(TRAVERSAL), None
            case name if name != "optional_type":
                return ONE, None
    return _compared(call)


def _ordered(call: Estimated) -> Outcome | None:
    return _compared(call) if call.overload.endswith(("_string", "_bytes")) else None


def _added(call: Estimated) -> Outcome | None:
    if call.overload not in ("add_string", "add_bytes", "add_list"):
        return None
    one, other = call.args
    call.coster.join_entries(call.node, one, other)
    size = call.size(one).plus(call.size(other))
    return (ONE if call.overload == "add_list" else size.scaled(TRAVERSAL)), size


def _pairs(factor: float) -> Estimate:
    return lambda call: (
        call.size(call.args[0]).times(call.size(call.args[1])).scaled(factor).plus(ONE),
        None,
    )


def _range(call: Estimated) -> Outcome:
    count = _integer(call.args[0], MAX)
    size = Range(count, count)
    return size.plus(LIST_COST), size


def _reversed(call: Estimated) -> Outcome | None:
    if call.target is None:
        return None
    size = call.size(call.target)
    return size.plus(LIST_COST), size


def _sliced(call: Estimated) -> Outcome | None:
    if call.target is None:
        return None
    most = call.size(call.target).most
    count = (_integer(call.args[1], most) - _integer(call.args[0], 0)) % (MAX + 1)
    size = Range(count, count)
    return size.plus(LIST_COST), size


def _flattened(call: Estimated) -> Outcome | None:
    if call.target is None:
        return None
    size, depth = call.size(call.target), _integer(call.args[0], MAX) if call.args else 1
    return size.scaled(float(depth)).plus(LIST_COST), size


def _compared_pairwise(call: Estimated) -> Outcome | None:
    """Compares every element with every other."""
    if call.target is None:
        return None
    compared = call.args[0] if call.node.function == "@sortByAssociatedKeys" else call.target
    size = call.size(compared)
    pairs = size.times(size)
    text = call.node.function != "distinct" and ("_string_" in call.overload or "_bytes_" in call.overload)
    return pairs.scaled(2 + (TRAVERSAL if text else 0)).plus(LIST_COST), pairs


def _bytes(call: Estimated) -> Outcome:
    size = call.size(call.args[0])
    return size.scaled(TRAVERSAL), Range(size.least, min(size.most * 4, MAX))


def _text(call: Estimated) -> Outcome:
    size = call.size(call.args[0])
    return size.scaled(TRAVERSAL), Range(size.least // 4, size.most)


def _quoted(call: Estimated) -> Outcome:
    size = call.size(call.args[0])
    return size.scaled(TRAVERSAL), Range(size.least + 2, min(size.most * 2 + 2, MAX))


def _fixed(cost: int) -> Estimate:
    return lambda _call: (Range(cost, cost), None)


def _integer(node: Node, default: int) -> int:
    """Value of an integer literal, else `default`."""
    if isinstance(node, Literal) and isinstance(node.value, int) and not isinstance(node.value, bool):
        return int(node.value)
    return default


_CHEAP = """
    serviceAccount path group resource subresource namespace name allowed reason error errored masked prefixLength
    family isUnspecified isLoopback isLinkLocalMulticast isLinkLocalUnicast isGlobalUnicast format.named sign
    asInteger isInteger asApproximateFloat isGreaterThan isLessThan compareTo add sub major minor patch getScheme
    getHostname getHost getPort getEscapedPath getQuery
"""
BY_FUNCTION: dict[str, Estimate] = {
    **dict.fromkeys(_CHEAP.split(), _fixed(1)),
    "check": _fixed(350_000),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _aggregated),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim"), _walked(kept=True)),
    "replace": _replace,
    "split": _split,
    "join": _join,
    "find": _matched(lambda size: Range(0, size.most)),
    "findAll": _matched(lambda size: size),
    **dict.fromkeys(
        ("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _first_argument(TRAVERSAL)
    ),
    "ip": _ip,
    "ip.isCanonical": _first_argument(2 * TRAVERSAL),
    **dict.fromkeys(("containsIP", "containsCIDR"), _contains_address),
    "validate": _validated,
    **dict.fromkeys(("sets.contains", "sets.intersects"), _pairs(1)),
    "sets.equivalent": _pairs(2),
    "lists.range": _range,
    "reverse": _reversed,
    "slice": _sliced,
    "flatten": _flattened,
    **dict.fromkeys(("distinct", "sort", "@sortByAssociatedKeys"), _compared_pairwise),
    "_==_": _equal,
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _ordered),
    "_+_": _added,
}
BY_OVERLOAD: dict[str, Estimate] = {
    "string_format": _walked(),
    "string_to_bytes": _bytes,
    "bytes_to_string": _text,
    "strings_quote": _quoted,
    **dict.fromkeys(("starts_with_string", "ends_with_string"), _first_argument(TRAVERSAL)),
    "in_list": lambda call: (call.size(call.args[1]), None),
    "matches_string": _matched(lambda _size: None),
    "contains_string": _contains,
    "not_equals": _compared,
}
