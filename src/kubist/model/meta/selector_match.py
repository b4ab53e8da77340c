"""Label selectors with many requirements. Matching costs O(labels of the object), not O(requirements)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from kubist.model.meta.integers import parse_int64

if TYPE_CHECKING:
    from kubist.model.meta.selectors import Requirement

Labels = dict[str, str]


class Merged:
    """Requirements of a selector, merged by label."""

    def __init__(self, requirements: Iterable[Requirement]) -> None:
        self._needed: set[str] = set()
        self._absent: set[str] = set()
        self._allowed: dict[str, frozenset[str]] = {}
        self._excluded: dict[str, set[str]] = {}
        self._above: dict[str, int] = {}
        self._below: dict[str, int] = {}
        for requirement in requirements:
            self._take(requirement)

    def _take(self, requirement: Requirement) -> None:
        key, values = requirement.key, requirement.values
        match requirement.operator:
            case "!":
                self._absent.add(key)
                return
            case "!=" | "notin":
                self._excluded.setdefault(key, set()).update(values)
                return
            case "gt":
                self._above[key] = max(int(values[0]), self._above.get(key, int(values[0])))
            case "lt":
                self._below[key] = min(int(values[0]), self._below.get(key, int(values[0])))
            case "=" | "==" | "in":
                self._allowed[key] = self._allowed.get(key, frozenset(values)) & frozenset(values)
        self._needed.add(key)

    def matches(self, labels: Labels) -> bool:
        found = 0
        for key, value in labels.items():
            if key in self._absent or value in self._excluded.get(key, ()):
                return False
            if key in self._needed:
                found += 1
                if key in self._allowed and value not in self._allowed[key]:
                    return False
                if not self._within(key, value):
                    return False
        return found == len(self._needed)

    def _within(self, key: str, value: str) -> bool:
        if key not in self._above and key not in self._below:
            return True
        number = parse_int64(value)
        if number is None:
            return False
        return self._above.get(key, number - 1) < number < self._below.get(key, number + 1)


def matcher(requirements: tuple[Requirement, ...]) -> Callable[[Labels], bool]:
    return Merged(requirements).matches
