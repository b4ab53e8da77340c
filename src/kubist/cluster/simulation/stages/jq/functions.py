"""Functions of jq, by name and number of arguments."""

from __future__ import annotations

import datetime
import math
import re
import string as string_
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import orjson

from kubist.base.jsontext.json import MAX_DEPTH as MAX_JSON_DEPTH
from kubist.cluster.simulation.stages.jq import filters, generators, values
from kubist.cluster.simulation.stages.jq.values import (
    Failure,
    Filter,
    Scope,
    array,
    described,
    order,
    string,
    truth,
    type_of,
)
from kubist.cluster.simulation.stages.limits import Budget, check_size
from kubist.model.cel import regex
from kubist.model.meta import times

_NUMBER = re.compile(r"[+-]?(?:[0-9]++(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_LOWER = str.maketrans(string_.ascii_uppercase, string_.ascii_lowercase)
_UPPER = str.maketrans(string_.ascii_lowercase, string_.ascii_uppercase)


def _plain(function: Callable[[Any], Any]) -> Callable[[], Filter]:
    """Function of the input only."""

    def run(data: Any, scope: Scope) -> Iterator[Any]:
        scope.budget.spend(1 + (len(data) // 16 if isinstance(data, list | dict | str) else 0))
        yield function(data)

    return lambda: run


def _with_value(function: Callable[[Any, Any], Any]) -> Callable[[Filter], Filter]:
    """Function of the input and each output of its argument."""

    def make(argument: Filter) -> Filter:
        def run(data: Any, scope: Scope) -> Iterator[Any]:
            for value in argument(data, scope):
                scope.budget.spend(1 + (len(data) // 16 if isinstance(data, list | dict | str) else 0))
                yield function(data, value)

        return run

    return make


def _length(data: Any) -> Any:
    if data is None:
        return 0
    if isinstance(data, bool):
        raise Failure(f"{described(data)} has no length")
    return abs(data) if isinstance(data, int | float) else len(data)


def _keys(data: Any) -> Any:
    if isinstance(data, dict):
        return sorted(data)
    return list(range(len(array(data, "keys"))))


def _sum(data: Any) -> Any:
    items = [item for item in values.items(data) if item is not None]
    if items and all(isinstance(item, str) for item in items):
        return "".join(items)
    if items and all(isinstance(item, list) for item in items):
        return [part for item in items for part in item]
    total = None
    for item in items:
        total = values.add(total, item)
    return total


def _number(data: Any) -> Any:
    if isinstance(data, str):
        if not _NUMBER.fullmatch(data):
            raise Failure(f"{described(data)} cannot be parsed as a number")
        return values.finite(int(data) if data.lstrip("+-").isdecimal() and len(data) < 18 else float(data))
    return values.number(data)


def _flat(data: Any, depth: Any = MAX_JSON_DEPTH) -> list[Any]:
    if values.number(depth) < 0:
        raise Failure(f"flatten: the depth {depth} is negative")
    found: list[Any] = []
    for item in values.items(data):
        if isinstance(item, list) and depth > 0:
            found += _flat(item, depth - 1)
        else:
            found.append(item)
    return found


def _from_entries(data: Any) -> Any:
    made = {}
    for entry in array(data, "from_entries"):
        if not isinstance(entry, dict):
            raise Failure(f"from_entries cannot use {described(entry)}")
        key = next((entry[name] for name in ("key", "Key", "name", "Name") if truth(entry.get(name))), None)
        if not isinstance(key, str):
            raise Failure(f"from_entries needs strings as keys but got: {described(key)}")
        made[key] = entry.get("value", entry.get("Value"))
    return made


def _to_entries(data: Any) -> Any:
    if not isinstance(data, dict):
        raise Failure(f"{described(data)} has no entries")
    return [{"key": key, "value": data[key]} for key in sorted(data)]


def _parsed(data: Any) -> Any:
    try:
        return orjson.loads(string(data, "fromjson"))
    except orjson.JSONDecodeError:
        raise Failure(f"{described(data)} is not JSON") from None


def _has(data: Any, key: Any) -> Any:
    if isinstance(data, dict) and isinstance(key, str):
        return key in data
    if isinstance(data, list) and type_of(key) == "number":
        return 0 <= key < len(data)
    raise Failure(f"cannot check whether {type_of(data)} has a key of type {type_of(key)}")


def _contains(data: Any, part: Any, budget: Budget) -> bool:
    budget.spend()
    if isinstance(data, dict) and isinstance(part, dict):
        return all(key in data and _contains(data[key], value, budget) for key, value in part.items())
    if isinstance(data, list) and isinstance(part, list):
        return all(
            any(_same_type(item, value) and _contains(item, value, budget) for item in data) for value in part
        )
    if isinstance(data, str) and isinstance(part, str):
        return part in data
    if not _same_type(data, part):
        raise Failure(f"{described(data)} and {described(part)} cannot have their containment checked")
    return order(data) == order(part)


def _containment(argument: Filter, *, inside: bool) -> Filter:
    def run(data: Any, scope: Scope) -> Iterator[Any]:
        for value in argument(data, scope):
            whole, part = (value, data) if inside else (data, value)
            yield _contains(whole, part, scope.budget)

    return run


def _same_type(a: Any, b: Any) -> bool:
    return type_of(a) == type_of(b)


def _joined(data: Any, separator: Any) -> str:
    between = string(separator, "join")
    parts = []
    for item in values.items(data):
        if isinstance(item, list | dict):
            raise Failure(f"{described(item)} cannot be joined")
        parts.append("" if item is None else item if isinstance(item, str) else values.text(item))
    check_size(sum(map(len, parts)) + len(between) * len(parts))
    return between.join(parts)


def _matches(data: Any, pattern: Any, flags: Any = None) -> bool:
    found = string(data, "test")
    wanted = string(pattern, "test")
    if flags:
        unknown = set(string(flags, "test")) - set("gin")
        if unknown:
            raise Failure(f"test: the flag {min(unknown)} is not supported")
        wanted = f"(?i){wanted}" if "i" in flags else wanted
    try:
        return regex.compile(wanted).search(found) is not None
    except regex.RegexError as error:
        raise Failure(str(error)) from None


def _test_with_flags(pattern: Filter, flags: Filter) -> Filter:
    def run(data: Any, scope: Scope) -> Iterator[Any]:
        for flag in flags(data, scope):
            for wanted in pattern(data, scope):
                scope.budget.spend(1 + (len(data) // 16 if isinstance(data, str) else 0))
                yield _matches(data, wanted, flag)

    return run


def _seconds(data: Any) -> Any:
    found = string(data, "fromdate")
    try:
        if len(found) > 19 and found[19] in ".,":
            raise ValueError("fractions of a second are not allowed")
        return times.parse_time(found)
    except ValueError:
        raise Failure(f"{described(data)} is not a date") from None


def _date(data: Any) -> str:
    try:
        moment = datetime.datetime.fromtimestamp(math.floor(values.number(data)), datetime.UTC)
    except (OverflowError, ValueError, OSError):
        raise Failure(f"{described(data)} is not a date") from None
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _text(data: Any) -> str:
    return data if isinstance(data, str) else values.text(data)


def _without_prefix(data: Any, prefix: Any) -> Any:
    return string(data, "ltrimstr").removeprefix(string(prefix, "ltrimstr"))


def _without_suffix(data: Any, suffix: Any) -> Any:
    return string(data, "rtrimstr").removesuffix(string(suffix, "rtrimstr"))


def _edge(name: str, at: int) -> Callable[[Any], Any]:
    return lambda data: values.index(array(data, name) if data is not None else None, at)


def _least(choose: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda data: choose(found, key=order) if (found := array(data, "min or max")) else None


def _unique(items: Iterable[Any]) -> list[Any]:
    found: list[Any] = []
    for item in sorted(items, key=order):
        if not found or order(found[-1]) != order(item):
            found.append(item)
    return found


def _whole(round_: Callable[[float | int], int]) -> Callable[[Any], Any]:
    return lambda data: round_(values.number(data))


_ANY, _ALL = generators.quantified(any), generators.quantified(all)


def _with_entries(inner: Filter) -> Filter:
    return filters.pipe([_plain(_to_entries)(), generators.map_(inner), _plain(_from_entries)()])


FUNCTIONS: dict[tuple[str, int], Callable[..., Filter]] = {
    ("empty", 0): generators.nothing,
    ("error", 0): generators.error,
    ("error", 1): generators.error,
    ("not", 0): _plain(lambda data: not truth(data)),
    ("length", 0): _plain(_length),
    ("keys", 0): _plain(_keys),
    ("add", 0): _plain(_sum),
    ("any", 0): lambda: _ANY[0](filters.identity),
    ("any", 1): _ANY[0],
    ("any", 2): _ANY[1],
    ("all", 0): lambda: _ALL[0](filters.identity),
    ("all", 1): _ALL[0],
    ("all", 2): _ALL[1],
    ("flatten", 0): _plain(_flat),
    ("flatten", 1): _with_value(_flat),
    ("floor", 0): _plain(_whole(math.floor)),
    ("ceil", 0): _plain(_whole(math.ceil)),
    ("round", 0): _plain(_whole(lambda value: int(math.copysign(math.floor(abs(value) + 0.5), value)))),
    ("abs", 0): _plain(lambda data: abs(values.number(data))),
    ("tostring", 0): _plain(_text),
    ("tonumber", 0): _plain(_number),
    ("tojson", 0): _plain(values.text),
    ("fromjson", 0): _plain(_parsed),
    ("type", 0): _plain(type_of),
    ("sort", 0): _plain(lambda data: sorted(array(data, "sort"), key=order)),
    ("sort_by", 1): generators.by("sort_by", generators.sorted_by),
    ("group_by", 1): generators.by("group_by", generators.groups),
    ("unique", 0): _plain(lambda data: _unique(array(data, "unique"))),
    ("unique_by", 1): generators.by(
        "unique_by", lambda pairs: [group[0] for group in generators.groups(pairs)]
    ),
    ("min", 0): _plain(_least(min)),
    ("max", 0): _plain(_least(max)),
    ("min_by", 1): generators.by("min_by", generators.extreme(min)),
    ("max_by", 1): generators.by("max_by", generators.extreme(max)),
    ("reverse", 0): _plain(lambda data: array(data, "reverse")[::-1]),
    ("first", 0): _plain(_edge("first", 0)),
    ("last", 0): _plain(_edge("last", -1)),
    ("first", 1): generators.first,
    ("last", 1): generators.last,
    ("isempty", 1): generators.is_empty,
    ("to_entries", 0): _plain(_to_entries),
    ("from_entries", 0): _plain(_from_entries),
    ("with_entries", 1): _with_entries,
    ("map", 1): generators.map_,
    ("map_values", 1): generators.map_values,
    ("select", 1): generators.select,
    ("has", 1): _with_value(_has),
    ("in", 1): _with_value(lambda data, held: _has(held, data)),
    ("contains", 1): lambda part: _containment(part, inside=False),
    ("inside", 1): lambda whole: _containment(whole, inside=True),
    ("startswith", 1): _with_value(
        lambda data, part: string(data, "startswith").startswith(string(part, "startswith"))
    ),
    ("endswith", 1): _with_value(
        lambda data, part: string(data, "endswith").endswith(string(part, "endswith"))
    ),
    ("ltrimstr", 1): _with_value(_without_prefix),
    ("rtrimstr", 1): _with_value(_without_suffix),
    ("split", 1): _with_value(lambda data, part: values.split(string(data, "split"), string(part, "split"))),
    ("join", 1): _with_value(_joined),
    ("test", 1): _with_value(_matches),
    ("test", 2): _test_with_flags,
    ("trim", 0): _plain(lambda data: string(data, "trim").strip()),
    ("ascii_downcase", 0): _plain(lambda data: string(data, "ascii_downcase").translate(_LOWER)),
    ("ascii_upcase", 0): _plain(lambda data: string(data, "ascii_upcase").translate(_UPPER)),
    ("now", 0): generators.now,
    ("fromdate", 0): _plain(_seconds),
    ("fromdateiso8601", 0): _plain(_seconds),
    ("todate", 0): _plain(_date),
    ("todateiso8601", 0): _plain(_date),
    ("nulls", 0): generators.of_type("null"),
    ("booleans", 0): generators.of_type("boolean"),
    ("numbers", 0): generators.of_type("number"),
    ("strings", 0): generators.of_type("string"),
    ("arrays", 0): generators.of_type("array"),
    ("objects", 0): generators.of_type("object"),
    ("iterables", 0): generators.of_type("array", "object"),
    ("scalars", 0): generators.of_type("null", "boolean", "number", "string"),
    ("values", 0): generators.of_type("boolean", "number", "string", "array", "object"),
}
NAMES = frozenset(name for name, _ in FUNCTIONS)
