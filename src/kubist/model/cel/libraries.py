"""Implementations of the string, list and set libraries; kubernetes.py has the Kubernetes types."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

from kubist.base.offload import leave_loop
from kubist.model.cel import regex
from kubist.model.cel.errors import EvaluationError, NoSuchOverload
from kubist.model.cel.format_strings import format_string, quote
from kubist.model.cel.functions import text_function
from kubist.model.cel.kubernetes import KUBERNETES
from kubist.model.cel.values import Duration, Uint, check_size, checked_int, checked_uint, compare, equal


def _position(text: str, index: int) -> int:
    if isinstance(index, bool) or not isinstance(index, int):
        raise NoSuchOverload
    if not 0 <= index <= len(text):
        raise EvaluationError(f"index out of range: {index}")
    return index


def char_at(text: str, index: int) -> str:
    return text[_position(text, index) : index + 1]


def index_of(target: Any, item: Any, start: int = 0) -> int:
    if isinstance(target, list):
        return next((index for index, element in enumerate(target) if equal(element, item)), -1)
    if not isinstance(target, str) or not isinstance(item, str):
        raise NoSuchOverload("indexOf")
    if start < 0 and item:
        raise EvaluationError(f"index out of range: {start}")
    return target.find(item, start) if item else start


def last_index_of(target: Any, item: Any, start: int | None = None) -> int:
    if isinstance(target, list):
        return next((i for i in range(len(target) - 1, -1, -1) if equal(target[i], item)), -1)
    if not isinstance(target, str) or not isinstance(item, str):
        raise NoSuchOverload("lastIndexOf")
    if not item:
        return len(target) if start is None else start
    if start is None:
        return target.rfind(item)
    if start < 0:
        raise EvaluationError(f"index out of range: {start}")
    return target.rfind(item, 0, start + len(item)) if start < len(target) else -1


def replace(text: str, old: str, new: str, count: int = -1) -> str:
    if len(new) > len(old):
        matches = text.count(old)
        check_size(len(text) + (matches if count < 0 else min(matches, count)) * (len(new) - len(old)))
    return text.replace(old, new, count)


def split(text: str, separator: str, count: int = -1) -> list[str]:
    if count == 0:
        return []
    if not separator:
        pieces = list(text)
        return (
            pieces
            if count < 0 or len(pieces) <= count
            else [*pieces[: count - 1], "".join(pieces[count - 1 :])]
        )
    return text.split(separator, count - 1 if count > 0 else -1)


def substring(text: str, start: int, end: int | None = None) -> str:
    last = len(text) if end is None else end
    if not 0 <= start <= len(text) or not 0 <= last <= len(text):
        raise EvaluationError(f"index out of range: {start if not 0 <= start <= len(text) else last}")
    if start > last:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {last}")
    return text[start:last]


_LOWER = {code: code + 32 for code in range(65, 91)}
_UPPER = {code: code - 32 for code in range(97, 123)}


def join(items: list[Any], separator: str = "") -> str:
    if not all(isinstance(item, str) for item in items):
        raise NoSuchOverload("join")
    check_size(sum(map(len, items)) + len(separator) * len(items))
    return separator.join(items)


def find(text: str, pattern: str) -> str:
    match = _regex(pattern).search(text)
    return match.group(0) if match is not None else ""


_LONG_TEXT = 5_000
"""Length in characters from which the worker searches for all matches, because each takes some microseconds."""


def find_all(text: str, pattern: str, count: int = -1) -> list[str]:
    if len(text) > _LONG_TEXT:
        leave_loop()
    matches: list[str] = []
    for match in _regex(pattern).finditer(text):
        if len(matches) == count:
            break
        matches.append(match.group(0))
    return matches


def _regex(pattern: str) -> Any:
    try:
        return regex.compile_aside(pattern)
    except regex.RegexError as error:
        raise EvaluationError(f"Illegal regex: {error}") from None


def is_sorted(items: list[Any]) -> bool:
    return all(compare(a, b) <= 0 for a, b in itertools.pairwise(items))


def total(items: list[Any]) -> Any:
    if not items:
        return 0
    if isinstance(items[0], Duration):
        return Duration(checked_int(sum(item.nanoseconds for item in items)))
    if isinstance(items[0], Uint):
        return checked_uint(sum(map(int, items)))
    return checked_int(sum(items)) if isinstance(items[0], int) else math.fsum(items)


def _extreme(name: str, sign: int) -> Callable[[list[Any]], Any]:
    def extreme(items: list[Any]) -> Any:
        if not items:
            raise EvaluationError(f"{name} called on empty list")
        best = items[0]
        for item in items[1:]:
            if compare(item, best) * sign > 0:
                best = item
        return best

    return extreme


def slice_(items: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise EvaluationError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvaluationError(
            f"cannot slice({start}, {end}), start index must be less than or equal to end index"
        )
    if end > len(items):
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return list(items[start:end])


def flatten(items: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    flat: list[Any] = []
    for item in items:
        if isinstance(item, list) and depth > 0:
            flat += flatten(item, depth - 1)
        else:
            flat.append(item)
        check_size(len(flat))
    return flat


def distinct(items: list[Any]) -> list[Any]:
    kept: list[Any] = []
    for item in items:
        if not any(equal(item, other) for other in kept):
            kept.append(item)
    return kept


def sort(items: list[Any]) -> list[Any]:
    return sorted(items, key=functools.cmp_to_key(compare))


def sort_by_keys(items: list[Any], keys: list[Any]) -> list[Any]:
    pairs = sorted(zip(keys, range(len(items)), strict=True), key=lambda pair: _Ordered(pair[0]))
    return [items[index] for _, index in pairs]


@functools.total_ordering
class _Ordered:
    """Wrapper that sorts by CEL's order."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Ordered) and compare(self.value, other.value) == 0

    def __lt__(self, other: _Ordered) -> bool:
        return compare(self.value, other.value) < 0


def range_(count: int) -> list[int]:
    if count > 1_000_000:
        raise EvaluationError("lists.range() is limited to 1000000 elements")
    return list(range(max(count, 0)))


def sets_contains(items: list[Any], subset: list[Any]) -> bool:
    return all(any(equal(item, element) for element in items) for item in subset)


LIBRARIES: dict[str, Callable[..., Any]] = {
    "charAt": char_at,
    "indexOf": index_of,
    "lastIndexOf": last_index_of,
    "lowerAscii": text_function("lowerAscii", lambda text: text.translate(_LOWER)),
    "upperAscii": text_function("upperAscii", lambda text: text.translate(_UPPER)),
    "replace": replace,
    "split": split,
    "substring": substring,
    "trim": text_function("trim", str.strip),
    "join": join,
    "format": format_string,
    "strings.quote": text_function("quote", quote),
    "find": text_function("find", find),
    "findAll": find_all,
    "isSorted": is_sorted,
    "sum": total,
    "max": _extreme("max", 1),
    "min": _extreme("min", -1),
    "slice": slice_,
    "flatten": flatten,
    "reverse": lambda items: list(reversed(items)),
    "distinct": distinct,
    "sort": sort,
    "@sortByAssociatedKeys": sort_by_keys,
    "lists.range": range_,
    "sets.contains": sets_contains,
    "sets.equivalent": lambda a, b: sets_contains(a, b) and sets_contains(b, a),
    "sets.intersects": lambda a, b: any(any(equal(x, y) for y in b) for x in a),
    **KUBERNETES,
}
