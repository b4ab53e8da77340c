"""Duplicate values in a list."""

from __future__ import annotations

from collections.abc import Hashable, Iterable


def repeats(values: Iterable[Hashable]) -> list[int]:
    """Indexes of values that occurred before."""
    seen: set[Hashable] = set()
    found = []
    for index, value in enumerate(values):
        if value in seen:
            found.append(index)
        seen.add(value)
    return found
