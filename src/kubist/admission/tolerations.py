"""Tolerations of pods: whether one covers another, and several put together without what is covered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Object = dict[str, Any]


def covers(wide: Object, narrow: Object) -> bool:
    """Whether `wide` tolerates all that `narrow` does."""
    if wide == narrow:
        return True
    operator = wide.get("operator", "Equal")
    if narrow.get("key", "") != wide.get("key", "") and (wide.get("key") or operator != "Exists"):
        return False
    if narrow.get("effect", "") != wide.get("effect", "") and wide.get("effect"):
        return False
    if wide.get("effect") == "NoExecute" and wide.get("tolerationSeconds") is not None:
        seconds = narrow.get("tolerationSeconds")
        if seconds is None or seconds > wide["tolerationSeconds"]:
            return False
    if operator == "Exists":
        return True
    return bool(
        operator == narrow.get("operator", "Equal") == "Equal"
        and narrow.get("value", "") == wide.get("value", "")
    )


def merge(first: Sequence[Object], second: Sequence[Object]) -> list[Object]:
    """Both lists in order, without those that another one covers."""
    everything = [*first, *second]
    merged: list[Object] = []
    for index, toleration in enumerate(everything):
        if any(covers(held, toleration) for held in merged):
            continue
        if any(later != toleration and covers(later, toleration) for later in everything[index + 1 :]):
            continue
        merged.append(toleration)
    return merged
