"""Actual cost of calls, by arguments and result. A call that is not listed costs 1.

call_costs.py estimates the same costs before evaluation. Change both together: an estimate must not be too
low.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from kubist.model.cel.values import actual_size, check_size

Cost = Callable[[tuple[Any, ...], Any], int]
TRAVERSAL = 0.1
REGEX = 0.25


def _first(factor: float) -> Cost:
    return lambda args, _result: math.ceil(actual_size(args[0]) * factor)


def traversal(value: Any) -> int:
    """Cost of traversing a whole value. Raises CostExceeded for too many values."""
    cost = seen = 0
    rest = [value]
    while rest:
        value = rest.pop()
        if isinstance(value, (str, bytes)):
            cost += int(len(value) * TRAVERSAL)
        elif isinstance(value, list):
            rest += value
        elif isinstance(value, dict):
            rest += value
            rest += value.values()
        else:
            cost += 1
        seen += 1
        check_size(10 * seen)
    return cost


def _regex(args: tuple[Any, ...], _result: Any) -> int:
    return math.ceil((1 + actual_size(args[0])) * TRAVERSAL) * math.ceil(actual_size(args[1]) * REGEX)


def _smaller(args: tuple[Any, ...], _result: Any) -> int:
    return math.ceil(min(actual_size(args[0]), actual_size(args[1])) * TRAVERSAL)


def _added(args: tuple[Any, ...], result: Any) -> int:
    if isinstance(args[0], (str, bytes)):
        return math.ceil((actual_size(args[0]) + actual_size(args[1])) * TRAVERSAL)
    return 1 + _excess(result) if result.__class__ is list else 1


_LARGE = 20_000
"""Number of elements or characters from which the size of a new value adds to its cost, because it takes memory."""


def _excess(value: Any) -> int:
    size = len(value)
    return size // 2 if size > _LARGE else 0


def _made(factor: float) -> Cost:
    """Cost by the first argument, for functions whose result may be much larger."""

    def cost(args: tuple[Any, ...], result: Any) -> int:
        size = actual_size(args[0])
        more = actual_size(result) - 2 * size
        return math.ceil(size * factor) + (math.ceil(more * TRAVERSAL) if more > _LARGE else 0)

    return cost


def _contains(args: tuple[Any, ...], _result: Any) -> int:
    return math.ceil(actual_size(args[0]) * TRAVERSAL) * math.ceil(actual_size(args[1]) * TRAVERSAL)


def _in(args: tuple[Any, ...], _result: Any) -> int:
    return len(args[1]) if isinstance(args[1], list) else 1


def _contains_address(args: tuple[Any, ...], _result: Any) -> int:
    cost = math.ceil(2 * actual_size(args[0]) * TRAVERSAL)
    return cost + (math.ceil(len(args[1]) * TRAVERSAL) if isinstance(args[1], str) else 0)


def _contains_cidr(args: tuple[Any, ...], result: Any) -> int:
    return _contains_address(args, result) + math.ceil(actual_size(args[0]) * TRAVERSAL) + 1


def _sets(factor: int) -> Cost:
    return lambda args, _result: 1 + actual_size(args[0]) * actual_size(args[1]) * factor


def _sorted(args: tuple[Any, ...], _result: Any) -> int:
    count = actual_size(args[0])
    keys = args[-1]
    factor = 2 + (TRAVERSAL if keys and isinstance(keys[0], (str, bytes)) else 0)
    return int(count * count * factor) + 11


def _ip(args: tuple[Any, ...], _result: Any) -> int:
    return math.ceil(len(args[0]) * TRAVERSAL) if isinstance(args[0], str) else 1


_TRAVERSED: Cost = lambda args, _result: traversal(args[0])  # noqa: E731
_COSTS: dict[str, Cost] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _TRAVERSED),
    **dict.fromkeys(
        (
            "url",
            "lowerAscii",
            "upperAscii",
            "substring",
            "trim",
            "cidr",
            "isIP",
            "isCIDR",
            "quantity",
            "isQuantity",
            "semver",
            "isSemver",
            "startsWith",
            "endsWith",
            "strings.quote",
        ),
        _first(TRAVERSAL),
    ),
    "format": _made(TRAVERSAL),
    "replace": _made(2 * TRAVERSAL),
    **dict.fromkeys(("split", "ip.isCanonical"), _first(2 * TRAVERSAL)),
    "join": lambda _args, result: math.ceil(actual_size(result) * 2 * TRAVERSAL),
    **dict.fromkeys(("find", "findAll", "matches"), _regex),
    "contains": _contains,
    "ip": _ip,
    "containsIP": _contains_address,
    "containsCIDR": _contains_cidr,
    "validate": lambda args, _result: math.ceil((1 + actual_size(args[1])) * TRAVERSAL) * 32,
    **dict.fromkeys(("_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"), _smaller),
    "_+_": _added,
    "@in": _in,
    "sets.contains": _sets(1),
    "sets.intersects": _sets(1),
    "sets.equivalent": _sets(2),
    "sort": _sorted,
    "@sortByAssociatedKeys": _sorted,
    "distinct": _sorted,
    "flatten": lambda args, _result: actual_size(args[0]) * (args[1] if len(args) > 1 else 1) + 11,
    **dict.fromkeys(("slice", "reverse", "lists.range"), lambda _args, result: actual_size(result) + 11),
    "check": lambda _args, _result: 350_000,
}


QUADRATIC = frozenset(
    ("sets.contains", "sets.intersects", "sets.equivalent", "sort", "@sortByAssociatedKeys", "distinct")
)
"""Functions whose cost is checked before they are called: it does not depend on the result."""


def of(name: str, overloads: tuple[str, ...]) -> Cost | None:
    if overloads == ("bytes_to_string",) or overloads == ("string_to_bytes",):
        return _first(TRAVERSAL)
    return _COSTS.get(name)
