"""Implementations of the standard functions. Arguments are values; a method's target is the first argument."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kubist.model.cel import regex
from kubist.model.cel.conversions import (
    to_bool,
    to_bytes,
    to_double,
    to_duration,
    to_int,
    to_string,
    to_timestamp,
    to_uint,
    value_type,
)
from kubist.model.cel.errors import EvaluationError, NoSuchOverload
from kubist.model.cel.values import (
    NONE,
    Duration,
    Optional,
    Timestamp,
    Uint,
    checked_int,
    checked_uint,
    compare,
    concatenated,
    equal,
    in_range,
    size,
)


def _zone(name: str) -> datetime.tzinfo:
    if re.fullmatch(r"[+-]?\d\d:\d\d", name):
        sign = -1 if name[0] == "-" else 1
        hours, minutes = name.lstrip("+-").split(":")
        return datetime.timezone(sign * datetime.timedelta(hours=int(hours), minutes=int(minutes)))
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise EvaluationError(f"unknown time zone {name}") from None


def _moment(part: Callable[[datetime.datetime], int], of_duration: int = 0) -> Callable[..., int]:
    def get(value: Any, zone: str = "") -> int:
        if isinstance(value, Timestamp):
            return part(value.datetime(_zone(zone) if zone else datetime.UTC))
        if isinstance(value, Duration) and of_duration:
            whole = abs(value.nanoseconds) // of_duration
            return whole if value.nanoseconds >= 0 else -whole
        raise NoSuchOverload

    return get


_MOMENTS: dict[str, Callable[..., int]] = {
    "getFullYear": _moment(lambda moment: moment.year),
    "getMonth": _moment(lambda moment: moment.month - 1),
    "getDayOfYear": _moment(lambda moment: moment.timetuple().tm_yday - 1),
    "getDayOfMonth": _moment(lambda moment: moment.day - 1),
    "getDate": _moment(lambda moment: moment.day),
    "getDayOfWeek": _moment(lambda moment: moment.isoweekday() % 7),
    "getHours": _moment(lambda moment: moment.hour, 3600 * 10**9),
    "getMinutes": _moment(lambda moment: moment.minute, 60 * 10**9),
    "getSeconds": _moment(lambda moment: moment.second, 10**9),
    "getMilliseconds": _moment(lambda moment: moment.microsecond // 1000, 10**6),
}


def _integers(a: Any, b: Any) -> type | None:
    """Common type of two integers (int or Uint); None if they differ."""
    if type(a) is int and type(b) is int:
        return int
    if type(a) is Uint and type(b) is Uint:
        return Uint
    return None


def add(a: Any, b: Any) -> Any:
    ta, tb = type(a), type(b)
    if ta is int and tb is int:
        return checked_int(a + b)
    if ta is str and tb is str:
        return a + b
    if ta is float and tb is float:
        return a + b
    if isinstance(a, list) and isinstance(b, list):
        return concatenated(a, b)
    if ta is Uint and tb is Uint:
        return checked_uint(int(a) + int(b))
    if ta is bytes and tb is bytes:
        return a + b
    if ta is Duration and tb is Duration:
        return Duration(checked_int(a.nanoseconds + b.nanoseconds))
    if {ta, tb} == {Timestamp, Duration}:
        return in_range(Timestamp(a.nanoseconds + b.nanoseconds))
    raise NoSuchOverload


def subtract(a: Any, b: Any) -> Any:
    kind = _integers(a, b)
    if kind is int:
        return checked_int(a - b)
    if kind is Uint:
        return checked_uint(int(a) - int(b))
    if type(a) is float and type(b) is float:
        return a - b
    if isinstance(a, Timestamp):
        if isinstance(b, Timestamp):
            return Duration(checked_int(a.nanoseconds - b.nanoseconds))
        if isinstance(b, Duration):
            return in_range(Timestamp(a.nanoseconds - b.nanoseconds))
    if isinstance(a, Duration) and isinstance(b, Duration):
        return Duration(checked_int(a.nanoseconds - b.nanoseconds))
    raise NoSuchOverload


def multiply(a: Any, b: Any) -> Any:
    kind = _integers(a, b)
    if kind is int:
        return checked_int(a * b)
    if kind is Uint:
        return checked_uint(int(a) * int(b))
    if type(a) is float and type(b) is float:
        return a * b
    raise NoSuchOverload


def divide(a: Any, b: Any) -> Any:
    kind = _integers(a, b)
    if kind is not None:
        if b == 0:
            raise EvaluationError("division by zero")
        quotient = abs(int(a)) // abs(int(b))
        quotient = quotient if (a < 0) == (b < 0) else -quotient
        return checked_int(quotient) if kind is int else Uint(quotient)
    if type(a) is float and type(b) is float:
        if b == 0:
            return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1, b)
        return a / b
    raise NoSuchOverload


def modulo(a: Any, b: Any) -> Any:
    kind = _integers(a, b)
    if kind is None:
        raise NoSuchOverload
    if b == 0:
        raise EvaluationError("modulus by zero")
    rest = abs(int(a)) % abs(int(b))
    return kind(-rest if a < 0 else rest)


def negate(a: Any) -> Any:
    if type(a) is int:
        return checked_int(-a)
    if type(a) is float:
        return -a
    raise NoSuchOverload


def logical_not(a: Any) -> bool:
    if a is True or a is False:
        return not a
    raise NoSuchOverload


def map_key(key: Any) -> Any:
    """A map key in stored form: whole floats and unsigned integers become int."""
    if isinstance(key, bool) or not isinstance(key, (int, float)):
        return key
    return int(key) if float(key).is_integer() else key


def index(container: Any, key: Any) -> Any:
    if isinstance(container, list):
        if isinstance(key, bool) or not isinstance(key, int):
            raise EvaluationError(f"unsupported index: {text_of(key)}")
        if not 0 <= key < len(container):
            raise EvaluationError(f"index out of bounds: {int(key)}")
        return container[int(key)]
    if isinstance(container, dict):
        entry_key = map_key(key)
        try:
            if entry_key in container:
                return container[entry_key]
        except TypeError:
            pass
        raise EvaluationError(f"no such key: {text_of(key)}")
    if isinstance(container, Optional):
        return optional_index(container, key)
    raise NoSuchOverload("_[_]")


def optional_index(container: Any, key: Any) -> Optional:
    if isinstance(container, Optional):
        return optional_index(container.value, key) if container.present else NONE
    try:
        return Optional(index(container, key), True)
    except EvaluationError as error:
        if isinstance(error, NoSuchOverload) or "unsupported index" in str(error):
            raise
        return NONE


def contained(item: Any, container: Any) -> bool:
    if isinstance(container, list):
        return any(equal(item, element) for element in container)
    if isinstance(container, dict):
        try:
            return map_key(item) in container
        except TypeError:
            return False
    raise NoSuchOverload("@in")


def text_of(value: Any) -> str:
    return (
        value
        if isinstance(value, str)
        else to_string(value)
        if not isinstance(value, (list, dict))
        else str(value)
    )


def _compared(test: Callable[[int], bool]) -> Callable[[Any, Any], bool]:
    return lambda a, b: test(compare(a, b))


def text_function(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a function of strings. Other arguments raise NoSuchOverload."""

    def checked(*args: Any) -> Any:
        for arg in args:
            if arg.__class__ is not str:
                raise NoSuchOverload(name)
        return function(*args)

    return checked


def matches(text: str, pattern: str) -> bool:
    try:
        return regex.compile_aside(pattern).search(text) is not None
    except regex.RegexError as error:
        raise EvaluationError(str(error)) from None


def map_insert(target: dict[Any, Any], *entry: Any) -> dict[Any, Any]:
    added = {entry[0]: entry[1]} if len(entry) == 2 else entry[0]
    for key in added:
        if key in target:
            raise EvaluationError(f"insert failed: key {text_of(key)} already exists")
    return target | added


def optional_value(value: Optional) -> Any:
    if not isinstance(value, Optional):
        raise NoSuchOverload("value")
    if not value.present:
        raise EvaluationError("optional.none() dereference")
    return value.value


def of_non_zero(value: Any) -> Optional:
    zero = value is None or value is False or (not isinstance(value, bool) and value in (0, "", b"", [], {}))
    return NONE if zero else Optional(value, True)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "_+_": add,
    "_-_": subtract,
    "_*_": multiply,
    "_/_": divide,
    "_%_": modulo,
    "-_": negate,
    "!_": logical_not,
    "_==_": equal,
    "_!=_": lambda a, b: not equal(a, b),
    "_<_": _compared(lambda order: order < 0),
    "_<=_": _compared(lambda order: order <= 0),
    "_>_": _compared(lambda order: order > 0),
    "_>=_": _compared(lambda order: order >= 0),
    "_[_]": index,
    "_[?_]": optional_index,
    "@in": contained,
    "size": size,
    "type": value_type,
    "dyn": lambda value: value,
    "int": to_int,
    "uint": to_uint,
    "double": to_double,
    "bool": to_bool,
    "string": to_string,
    "bytes": to_bytes,
    "timestamp": to_timestamp,
    "duration": to_duration,
    "matches": text_function("matches", matches),
    "contains": text_function("contains", lambda text, part: part in text),
    "startsWith": text_function("startsWith", str.startswith),
    "endsWith": text_function("endsWith", str.endswith),
    **_MOMENTS,
    "cel.@mapInsert": map_insert,
    "optional.of": lambda value: Optional(value, True),
    "optional.ofNonZeroValue": of_non_zero,
    "optional.none": lambda: NONE,
    "value": optional_value,
    "hasValue": lambda value: value.present,
    "optional.unwrap": lambda values: [value.value for value in values if value.present],
    "unwrapOpt": lambda values: [value.value for value in values if value.present],
}
