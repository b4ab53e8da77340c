"""Readable difference of two objects: one line for each field, with its path."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from kubist.model.meta.object import Object

IGNORED = ("metadata.managedFields", "metadata.resourceVersion")
LIST_KEYS = ("name", "type", "key", "ip", "uid")
"""Fields that identify the items of a list, in the order in which they are tried."""
LONGEST = 200
"""Maximum characters of a value that are shown."""
_MISSING = object()


def diff_lines(before: Object | None, after: Object | None) -> list[str]:
    """`~ spec.replicas: 1 -> 3`, `+` for added and `-` for removed fields, in the order of the objects."""
    if before is None and after is None:
        return []
    return list(_lines("", _MISSING if before is None else before, _MISSING if after is None else after))


def _lines(path: str, old: Any, new: Any) -> Iterator[str]:
    if path in IGNORED or old == new:
        return
    for pair in ((old, new), (new, old)):
        whole, other = pair
        if isinstance(whole, (dict, list)) and whole and (other is _MISSING or type(other) is type(whole)):
            yield from _inner(path, old, new)
            return
    if old is _MISSING:
        yield f"+ {path}: {_format_value(new)}"
    elif new is _MISSING:
        yield f"- {path}: {_format_value(old)}"
    else:
        yield f"~ {path}: {_format_value(old)} -> {_format_value(new)}"


def _inner(path: str, old: Any, new: Any) -> Iterator[str]:
    """Lines of the fields or items of two values, one of which may be missing."""
    kind = type(new if old is _MISSING else old)
    before, after = ({} if value is _MISSING else value for value in (old, new))
    if kind is list:
        before, after = _by_key(before or [], after or [])
    for key in (*before, *(key for key in after if key not in before)):
        dot = "." if path and kind is dict else ""
        name = key if kind is dict else f"[{key}]"
        if "." in name or "/" in name:
            name = f"[{key}]" if kind is dict else name
            dot = ""
        yield from _lines(f"{path}{dot}{name}", before.get(key, _MISSING), after.get(key, _MISSING))


def _by_key(old: list[Any], new: list[Any]) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Items of two lists by their name, or by their position."""
    items = [*old, *new]
    for key in LIST_KEYS:
        if all(isinstance(item, dict) and isinstance(item.get(key), str) for item in items):
            named = {item[key]: item for item in old}, {item[key]: item for item in new}
            if len(named[0]) == len(old) and len(named[1]) == len(new):
                return named
    return ({str(n): item for n, item in enumerate(old)}, {str(n): item for n, item in enumerate(new)})


def _format_value(value: Any) -> str:
    text = value if isinstance(value, str) and value.isprintable() and value else orjson.dumps(value).decode()
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text)} characters)"
