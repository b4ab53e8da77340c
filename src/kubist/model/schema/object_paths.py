"""Paths of values in an object, and copies of an object that differ from it at some paths."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

from kubist.model.meta.object import Object

Path = tuple[str | int, ...]
"""Field names, map keys and list indexes from the object to the value."""
ABSENT: Any = object()
"""Value of `replaced` for a field that the copy does not have."""


def parent(value: Any, path: Path) -> Any:
    """Container of the last step of a path. None if the path does not exist."""
    for step in path[:-1]:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def replaced(obj: Object, changes: Mapping[Path, Any]) -> Object:
    """Copy of an object with other values at these paths, whose parents must exist. The copy shares every container
    in which nothing changes. Each container is copied once at most, so the work is linear in the object."""
    if not changes:
        return obj
    root = dict(obj)
    copies = {id(root)}
    for path, value in changes.items():
        inner: Any = root
        for step in path[:-1]:
            child = inner[step]
            if id(child) not in copies:
                child = inner[step] = copy(child)
                copies.add(id(child))
            inner = child
        if value is ABSENT:
            del inner[path[-1]]
        else:
            inner[path[-1]] = value
    return root
