"""Difference of two JSON values as a JSON patch (RFC 6902)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Operation = dict[str, Any]


def diff(old: Any, new: Any, path: str = "") -> Iterator[Operation]:
    """Operations that turn `old` into `new`. Lists are compared after their equal beginning and end."""
    if isinstance(old, dict) and isinstance(new, dict):
        yield from _diff_objects(old, new, path)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _diff_lists(old, new, path)
    elif not _is_same(old, new):
        yield {"op": "replace", "path": path, "value": new}


def _diff_objects(old: dict[str, Any], new: dict[str, Any], path: str) -> Iterator[Operation]:
    for key in old:
        if key not in new:
            yield {"op": "remove", "path": f"{path}/{_escaped(key)}"}
    for key, value in new.items():
        below = f"{path}/{_escaped(key)}"
        if key in old:
            yield from diff(old[key], value, below)
        else:
            yield {"op": "add", "path": below, "value": value}


def _diff_lists(old: list[Any], new: list[Any], path: str) -> Iterator[Operation]:
    shorter = min(len(old), len(new))
    start = end = 0
    while start < shorter and _is_same(old[start], new[start]):
        start += 1
    while end < shorter - start and _is_same(old[-1 - end], new[-1 - end]):
        end += 1
    both = shorter - end
    for index in range(start, both):
        yield from diff(old[index], new[index], f"{path}/{index}")
    for index in reversed(range(both, len(old) - end)):
        yield {"op": "remove", "path": f"{path}/{index}"}
    for index in range(both, len(new) - end):
        yield {"op": "add", "path": f"{path}/{index}", "value": new[index]}


def _is_same(old: Any, new: Any) -> bool:
    """Equality of JSON values. In Python, True equals 1."""
    if isinstance(old, bool) or isinstance(new, bool):
        return old is new
    if isinstance(old, dict) and isinstance(new, dict):
        return old.keys() == new.keys() and all(_is_same(value, new[key]) for key, value in old.items())
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(_is_same, old, new))
    return bool(old == new)


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
