"""CEL values without a Python type, and CEL's equality and order."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from typing import Any

from kubist.base.offload import leave_loop
from kubist.model.cel.errors import CostExceeded, EvaluationError, NoSuchOverload
from kubist.model.meta import durations

INT_MIN, INT_MAX, UINT_MAX = -(1 << 63), (1 << 63) - 1, (1 << 64) - 1


class Uint(int):
    """An unsigned integer."""


class SetList(list[Any]):
    """A list with `x-kubernetes-list-type: set`: unique items, order without meaning."""


class MapList(list[Any]):
    """A list with `x-kubernetes-list-type: map`: objects identified by key fields."""

    def __init__(self, items: Any = (), keys: tuple[str, ...] = ()) -> None:
        super().__init__(items)
        self.keys = keys


@dataclass(slots=True, frozen=True)
class Optional:
    """CEL's optional value."""

    value: Any = None
    present: bool = False


NONE = Optional()


@dataclass(slots=True, frozen=True, order=True)
class Duration:
    nanoseconds: int

    def __str__(self) -> str:
        seconds, rest = divmod(abs(self.nanoseconds), 10**9)
        sign = "-" if self.nanoseconds < 0 else ""
        fraction = f".{rest:09d}".rstrip("0") if rest else ""
        return f"{sign}{seconds}{fraction}s"


@dataclass(slots=True, frozen=True, order=True)
class Timestamp:
    """Nanoseconds since 1970."""

    nanoseconds: int

    def datetime(self, zone: datetime.tzinfo = datetime.UTC) -> datetime.datetime:
        epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
        return (epoch + datetime.timedelta(microseconds=self.nanoseconds // 1000)).astimezone(zone)

    def __str__(self) -> str:
        moment = self.datetime()
        fraction = self.nanoseconds % 10**9
        decimals = f".{fraction:09d}".rstrip("0") if fraction else ""
        return f"{moment.year:04d}-{moment:%m-%dT%H:%M:%S}{decimals}Z"


def parse_duration(text: str) -> Duration:
    try:
        return Duration(durations.parse(text))
    except ValueError as error:
        raise EvaluationError(str(error)) from None


_TIMESTAMP = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:[.,](\d+))?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)
_MIN_TIME, _MAX_TIME = -62135596800 * 10**9, 253402300799999999999


def parse_timestamp(text: str) -> Timestamp:
    match = _TIMESTAMP.fullmatch(text)
    try:
        if match is None:
            raise ValueError
        year, month, day, hour, minute, second = (int(match[index]) for index in range(1, 7))
        moment = datetime.datetime(year, month, day, hour, minute, second, tzinfo=datetime.UTC)
    except ValueError:
        raise EvaluationError(f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse') from None
    offset = 0
    if match[8] not in "Zz":
        offset = (int(match[8][1:3]) * 60 + int(match[8][4:6])) * (60 if match[8][0] == "+" else -60)
    days = moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    seconds = days.days * 86400 + days.seconds - offset
    fraction = int(((match[7] or "") + "000000000")[:9])
    return in_range(Timestamp(seconds * 10**9 + fraction))


def in_range(moment: Timestamp) -> Timestamp:
    if not _MIN_TIME <= moment.nanoseconds <= _MAX_TIME:
        raise EvaluationError("timestamp overflow")
    return moment


def parse_date(text: str) -> Timestamp:
    return parse_timestamp(text + "T00:00:00Z")


_NUMBERS = (int, float)
LARGEST = 10_000_000
"""Maximum size of a value that a function makes, and of values that are compared: more characters or elements than an
evaluation can traverse within its cost limit. Variables that refer twice to others double in each step."""


_LONG = 200_000
"""Size from which a value is made in the worker."""


def check_size(size: int) -> None:
    """Called before a value of this size is made or compared. An element counts as 10 if it takes that long."""
    if size > _LONG:
        leave_loop()
        if size > LARGEST:
            raise CostExceeded


class Growing(list[Any]):
    """Result of a comprehension under construction. Nothing else refers to it, so elements are added in place."""

    __slots__ = ()


def equal(a: Any, b: Any) -> bool:
    """CEL's ==: numbers by value regardless of type, lists and maps by content. Values of different types are
    unequal."""
    if a is b:
        return not (isinstance(a, float) and a != a)
    ta, tb = type(a), type(b)
    if ta is str or tb is str:
        return ta is tb and bool(a == b)
    if ta is bool or tb is bool:
        return ta is tb and a is b
    if isinstance(a, (list, dict)):
        return _equal_containers(a, b, [0])
    if isinstance(a, Optional) and isinstance(b, Optional):
        return a.present == b.present and (not a.present or equal(a.value, b.value))
    if isinstance(a, _NUMBERS) and isinstance(b, _NUMBERS):
        return bool(a == b)
    return ta is tb and bool(a == b)


def _equal_containers(a: list[Any] | dict[Any, Any], b: Any, steps: list[int]) -> bool:
    """Equality of lists and maps. `steps` counts the values that were compared."""

    def same(x: Any, y: Any) -> bool:
        if isinstance(x, (list, dict)) and x is not y:
            return _equal_containers(x, y, steps)
        return equal(x, y)

    if not isinstance(b, list if isinstance(a, list) else dict) or len(a) != len(b):
        return False
    steps[0] += len(a) + 1
    check_size(10 * steps[0])
    if isinstance(a, dict):
        return all(key in b and same(value, b[key]) for key, value in a.items())
    if isinstance(a, MapList) or isinstance(b, MapList):
        keys: tuple[str, ...] = (a if isinstance(a, MapList) else b).keys  # type: ignore[assignment,union-attr]
        by_key = {_key(item, keys): item for item in b}
        return all((k := _key(item, keys)) in by_key and same(item, by_key[k]) for item in a)
    if isinstance(a, SetList) or isinstance(b, SetList):
        return all(any(same(x, y) for y in b) for x in a)
    return all(map(same, a, b))


def _key(item: Any, keys: tuple[str, ...]) -> str:
    return repr([item.get(key) if isinstance(item, dict) else None for key in keys])


def concatenated(a: list[Any], b: list[Any]) -> list[Any]:
    """CEL's + of lists. Sets and list maps merge by value and by key."""
    if a.__class__ is Growing:
        a += b
        return a
    check_size(len(a) + len(b))
    if isinstance(a, SetList):
        return SetList([*a, *(item for item in b if not any(equal(item, element) for element in a))])
    if isinstance(a, MapList):
        keys = a.keys
        added = {_key(item, keys): item for item in b}
        merged = [added.pop(_key(item, keys), item) for item in a]
        return MapList([*merged, *added.values()], keys)
    return a + b


def compare(a: Any, b: Any) -> int:
    """Negative, zero or positive. NaN raises EvaluationError."""
    ta, tb = type(a), type(b)
    if ta is bool or tb is bool:
        if ta is not tb:
            raise NoSuchOverload
        return int(a) - int(b)
    if isinstance(a, _NUMBERS) and isinstance(b, _NUMBERS):
        if a != a or b != b:
            raise EvaluationError("NaN values cannot be ordered")
        return (a > b) - (a < b)
    if ta is tb and ta in (str, bytes, Duration, Timestamp):
        return int(a > b) - int(a < b)
    raise NoSuchOverload


def checked_int(value: int) -> int:
    if not INT_MIN <= value <= INT_MAX:
        raise EvaluationError("integer overflow")
    return value


def checked_uint(value: int) -> Uint:
    if not 0 <= value <= UINT_MAX:
        raise EvaluationError("unsigned integer overflow")
    return Uint(value)


def size(value: Any) -> int:
    if isinstance(value, (str, bytes, list, dict)):
        return len(value)
    raise NoSuchOverload("size")


def actual_size(value: Any) -> int:
    """Size of a value for its cost; 1 for values without a size."""
    if isinstance(value, (str, bytes, list, dict)):
        return len(value)
    sized = getattr(value, "cost_size", None)
    return int(sized) if sized is not None else 1
