"""Values of jq: types, order, truth, arithmetic. A filter is a function from an input to its outputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import orjson

from kubist.cluster.simulation.stages.limits import MAX_SIZE, Budget, check_size


class Failure(Exception):
    """Error of an evaluation, which `try` and `?` catch. `value` is what `catch` gets."""

    def __init__(self, value: Any) -> None:
        super().__init__(value if isinstance(value, str) else text(value))
        self.value = value


class Scope:
    """Variables and budget of an evaluation."""

    __slots__ = ("budget", "now", "variables")

    def __init__(self, budget: Budget, now: float, variables: dict[str, Any] | None = None) -> None:
        self.budget = budget
        self.now = now
        self.variables = variables or {}

    def bind(self, name: str, value: Any) -> Scope:
        return Scope(self.budget, self.now, {**self.variables, name: value})


Filter = Callable[[Any, Scope], Iterator[Any]]


def type_of(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def described(value: Any) -> str:
    """Type and value for error messages, shortened."""
    shown = text(value)
    return f"{type_of(value)} ({shown if len(shown) <= 30 else shown[:27] + '...'})"


def text(value: Any) -> str:
    """JSON text of a value."""
    try:
        return orjson.dumps(value).decode()
    except (TypeError, ValueError):
        return str(value)


def truth(value: Any) -> bool:
    return value is not None and value is not False


_RANKS = {"null": 0, "boolean": 1, "number": 2, "string": 3, "array": 4, "object": 5}


def order(value: Any) -> tuple[Any, ...]:
    """Sort key in jq's order: null, false, true, numbers, strings, arrays, objects."""
    rank = _RANKS[type_of(value)]
    if rank == 4:
        return rank, tuple(order(item) for item in value)
    if rank == 5:
        names = tuple(sorted(value))
        return rank, names, tuple(order(value[name]) for name in names)
    return (rank,) if value is None else (rank, value)


def number(value: Any) -> float | int:
    if type_of(value) != "number":
        raise Failure(f"{described(value)} is not a number")
    found: float | int = value
    return found


def string(value: Any, function: str) -> str:
    if not isinstance(value, str):
        raise Failure(f"{function} cannot be applied to: {described(value)}")
    return value


def array(value: Any, function: str) -> list[Any]:
    if not isinstance(value, list):
        raise Failure(f"{function} cannot be applied to: {described(value)}")
    return value


def finite(value: float | int) -> float | int:
    """Result of arithmetic: whole numbers become integers, and infinities become the largest float, as in JSON."""
    if isinstance(value, int):
        return value if abs(value) < 1 << 64 else finite(_as_float(value))
    if math.isnan(value):
        raise Failure("the result is not a number")
    if math.isinf(value):
        return math.copysign(1.7976931348623157e308, value)
    return int(value) if value.is_integer() and abs(value) < 1 << 63 else value


def _as_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def add(a: Any, b: Any) -> Any:
    if a is None:
        return b
    if b is None:
        return a
    kinds = (type_of(a), type_of(b))
    if kinds == ("number", "number"):
        return finite(a + b)
    if kinds[0] == kinds[1] and kinds[0] in ("string", "array"):
        check_size(len(a) + len(b))
        return a + b
    if kinds == ("object", "object"):
        return {**a, **b}
    raise Failure(f"{described(a)} and {described(b)} cannot be added")


def subtract(a: Any, b: Any) -> Any:
    kinds = (type_of(a), type_of(b))
    if kinds == ("number", "number"):
        return finite(a - b)
    if kinds == ("array", "array"):
        gone = {order(item) for item in b}
        return [item for item in a if order(item) not in gone]
    raise Failure(f"{described(a)} and {described(b)} cannot be subtracted")


def multiply(a: Any, b: Any) -> Any:
    kinds = (type_of(a), type_of(b))
    if kinds == ("number", "number"):
        return finite(a * b)
    if kinds == ("object", "object"):
        return _merged(a, b)
    if set(kinds) == {"number", "string"}:
        return _repeated(a, b) if kinds[0] == "string" else _repeated(b, a)
    raise Failure(f"{described(a)} and {described(b)} cannot be multiplied")


def _repeated(text_: str, count: float) -> str | None:
    if count < 0:
        return None
    check_size(int(min(count, MAX_SIZE + 1)) * len(text_))
    return text_ * int(count)


def _merged(a: Any, b: Any) -> Any:
    if isinstance(a, dict) and isinstance(b, dict):
        return {**a, **{key: _merged(a.get(key), value) for key, value in b.items()}}
    return b


def divide(a: Any, b: Any) -> Any:
    kinds = (type_of(a), type_of(b))
    if kinds == ("number", "number"):
        if b == 0:
            raise Failure(f"{described(a)} and {described(b)} cannot be divided because the divisor is zero")
        if isinstance(a, int) and isinstance(b, int) and a % b == 0:
            return a // b
        return finite(a / b)
    if kinds == ("string", "string"):
        return split(a, b) if a else []
    raise Failure(f"{described(a)} and {described(b)} cannot be divided")


def split(a: str, b: str) -> list[str]:
    return a.split(b) if b else list(a)


def modulo(a: Any, b: Any) -> Any:
    if type_of(a) != "number" or type_of(b) != "number":
        raise Failure(f"{described(a)} and {described(b)} cannot be divided")
    if int(b) == 0:
        raise Failure(f"{described(a)} and {described(b)} cannot be divided because the divisor is zero")
    rest = abs(int(a)) % abs(int(b))
    return rest if a >= 0 else -rest


def index(value: Any, key: Any) -> Any:
    """`value[key]`. A missing key or index gives null."""
    if isinstance(value, dict) and isinstance(key, str):
        return value.get(key)
    if isinstance(value, list) and type_of(key) == "number":
        at = math.floor(key)
        return value[at] if -len(value) <= at < len(value) else None
    if isinstance(value, str) and type_of(key) == "number":
        at = math.floor(key)
        return value[at] if -len(value) <= at < len(value) else None
    if value is None and (key is None or type_of(key) in ("number", "string")):
        return None
    if isinstance(key, str):
        raise Failure(f"cannot index {type_of(value)} with {text(key)}")
    raise Failure(f"cannot index {type_of(value)} with {type_of(key)}")


def slice_of(value: Any, start: Any, end: Any) -> Any:
    if value is None:
        return None
    if not isinstance(value, list | str):
        raise Failure(f"cannot slice {described(value)}")
    first = None if start is None else int(number(start))
    last = None if end is None else int(number(end))
    return value[first:last]


def items(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        return [value[key] for key in sorted(value)]
    raise Failure(f"cannot iterate over {described(value)}")


COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda a, b: order(a) == order(b),
    "!=": lambda a, b: order(a) != order(b),
    "<": lambda a, b: order(a) < order(b),
    "<=": lambda a, b: order(a) <= order(b),
    ">": lambda a, b: order(a) > order(b),
    ">=": lambda a, b: order(a) >= order(b),
}
ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": add,
    "-": subtract,
    "*": multiply,
    "/": divide,
    "%": modulo,
}
