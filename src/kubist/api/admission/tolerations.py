"""Tolerations of pods: coverage of one by another, and the merge of two lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kubist.model.meta.object import Object


class Coverage:
    """Index of tolerations. A lookup tells in constant time whether one of them covers a given toleration.

    Tolerations that differ only in tolerationSeconds share a slot. A slot keeps the two with the most seconds. The
    second one counts if the first is the given toleration itself.
    """

    def __init__(self, tolerations: Iterable[Object] = ()) -> None:
        self._slots: dict[tuple[str, ...], list[tuple[float, _Identity]]] = {}
        self._known: set[_Identity] = set()
        for toleration in tolerations:
            self.add(toleration)

    def add(self, toleration: Object) -> None:
        identity = _identity(toleration)
        if identity in self._known:
            return
        self._known.add(identity)
        operator = toleration.get("operator", "Equal")
        if operator not in ("Exists", "Equal"):
            return
        value = (toleration.get("value", ""),) if operator == "Equal" else ()
        slot = (toleration.get("key", ""), toleration.get("effect", ""), operator, *value)
        limit = toleration.get("tolerationSeconds")
        limited = toleration.get("effect") == "NoExecute" and limit is not None
        best = self._slots.setdefault(slot, [])
        best.append((float(limit) if limited and limit is not None else _UNLIMITED, identity))
        best.sort(key=lambda each: each[0], reverse=True)
        del best[2:]

    def covers(self, toleration: Object, *, others: bool = False) -> bool:
        """Whether a toleration in the index covers the given one. With `others`, equal tolerations do not count."""
        identity = _identity(toleration)
        if not others and identity in self._known:
            return True
        key, effect = toleration.get("key", ""), toleration.get("effect", "")
        seconds = toleration.get("tolerationSeconds")
        slots: list[tuple[str, ...]] = []
        for wide_effect in dict.fromkeys((effect, "")):
            slots += [(key, wide_effect, "Exists"), ("", wide_effect, "Exists")]
            if toleration.get("operator", "Equal") == "Equal":
                slots.append((key, wide_effect, "Equal", toleration.get("value", "")))
        return any(
            limit == _UNLIMITED or (seconds is not None and seconds <= limit)
            for slot in slots
            for limit, wide in self._slots.get(slot, ())
            if wide != identity
        )


_UNLIMITED = float("inf")
_Identity = tuple[tuple[str, Any], ...]


def _identity(toleration: Object) -> _Identity:
    return tuple(sorted(toleration.items()))


def merge(first: Sequence[Object], second: Sequence[Object]) -> list[Object]:
    """Both lists in order, without tolerations that another toleration covers. The cost is linear."""
    everything = [*first, *second]
    later = Coverage()
    needed: list[Object] = []
    for toleration in reversed(everything):
        if not later.covers(toleration, others=True):
            needed.append(toleration)
        later.add(toleration)
    coverage = Coverage()
    merged: list[Object] = []
    for toleration in reversed(needed):
        if not coverage.covers(toleration):
            merged.append(toleration)
            coverage.add(toleration)
    return merged
