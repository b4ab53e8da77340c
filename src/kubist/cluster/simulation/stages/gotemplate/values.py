"""Values of templates: truth, printing and comparison as in Go.

nil and a missing key are None. Numbers of the data are `Number`, because KWOK decodes them to json.Number, which is a
string type: `eq .spec.replicas "3"` holds, and zero counts as true.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from kubist.cluster.simulation.stages.limits import StageError


class Number(str):
    """Number of the data, in its text form."""

    __slots__ = ()

    def value(self) -> int | float:
        return float(self) if any(char in self for char in ".eE") else int(self)


def plain(value: Any) -> Any:
    """Value without `Number`, for YAML and JSON."""
    if isinstance(value, Number):
        return value.value()
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


def truth(value: Any) -> bool:
    return bool(value)


def kind_of(value: Any) -> str:
    """Go's kind of a value."""
    if value is None:
        return "invalid"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int"
    if isinstance(value, float):
        return "float64"
    if isinstance(value, str):
        return "string"
    return "slice" if isinstance(value, list) else "map"


def printed(value: Any) -> str:
    """Value as an action prints it."""
    return "<no value>" if value is None else shown(value)


def shown(value: Any) -> str:
    """Value as Go's %v prints it."""
    if value is None:
        return "<nil>"
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, list):
        return f"[{' '.join(shown(item) for item in value)}]"
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{shown(value[key])}' for key in sorted(value))}]"
    return str(value)


def _float(value: float) -> str:
    """Shortest form as Go's %g: with an exponent below 0.0001 and from 1,000,000 on."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    power = len(digits) + exponent - 1
    if value == 0 or -5 < power < 6:
        return repr(value).removesuffix(".0") if abs(value) >= 1e-4 or value == 0 else f"{value:f}"
    rest = "".join(map(str, digits[1:]))
    return f"{'-' if sign else ''}{digits[0]}{'.' + rest if rest else ''}e{'-' if power < 0 else '+'}{abs(power):02d}"


def quoted(text: str) -> str:
    """String literal of Go and YAML."""
    return json.dumps(text, ensure_ascii=False)


def integer(value: Any, function: str) -> int:
    """Argument that Go declares as an int."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise StageError(f"{function}: expected an integer but got {described(value)}")
    return value


def text_of(value: Any, function: str) -> str:
    """Argument that Go declares as a string."""
    if not isinstance(value, str) or isinstance(value, Number):
        raise StageError(f"{function}: expected a string but got {described(value)}")
    return value


def described(value: Any) -> str:
    if value is None:
        return "nil"
    text = shown(value)
    return f"{kind_of(value)} {text if len(text) <= 40 else text[:37] + '...'}"


def equal(first: Any, *others: Any) -> bool:
    if not others:
        raise StageError("eq: missing argument for comparison")
    return any(_same(first, other) for other in others)


def _same(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return a is b
    if isinstance(a, list | dict) or isinstance(b, list | dict):
        raise StageError(f"eq: {described(a)} and {described(b)} cannot be compared")
    first, second = _comparable(a, b, "eq")
    return bool(first == second)


def _comparable(a: Any, b: Any, function: str) -> tuple[Any, Any]:
    """Both operands as values of one type. A number of the data compares with numbers and with strings."""
    if isinstance(a, Number) and kind_of(b) in ("int", "float64"):
        return a.value(), b
    if isinstance(b, Number) and kind_of(a) in ("int", "float64"):
        return a, b.value()
    if kind_of(a) != kind_of(b):
        raise StageError(f"{function}: incompatible types for comparison: {described(a)} and {described(b)}")
    if isinstance(a, Number) and isinstance(b, Number) and function != "eq":
        return a.value(), b.value()
    return a, b


def compare(function: str, test: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """lt, le, gt or ge."""

    def run(a: Any, b: Any) -> bool:
        if kind_of(a) not in ("int", "float64", "string") or kind_of(b) not in ("int", "float64", "string"):
            raise StageError(f"{function}: {described(a)} and {described(b)} have no order")
        return test(*_comparable(a, b, function))

    return run


def index(value: Any, *keys: Any) -> Any:
    for key in keys:
        if isinstance(value, dict):
            value = value.get(text_of(key, "index"))
        elif isinstance(value, list | str) and not isinstance(value, Number):
            at = integer(key, "index")
            if not 0 <= at < len(value):
                raise StageError(f"index: the index {at} is out of range, the length is {len(value)}")
            value = value[at] if isinstance(value, list) else value.encode()[at]
        else:
            raise StageError(f"index: cannot index {described(value)}")
    return value


def field(value: Any, name: str) -> Any:
    """`.name` of a value."""
    if isinstance(value, dict):
        return value.get(name)
    if value is None:
        return None
    raise StageError(f"cannot take the field {name} of {described(value)}")
