"""Complaints about fields of a document: `unknown field "spec.foo"`, `duplicate field "metadata.name"`.

The cost is linear in the size of the document: a path becomes text only when a complaint names it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kubist.meta.fields import quoted

LIMIT = 100
"""Complaints about one document."""
LIMIT_TEXT = 256 << 10
"""Characters of all complaints about one document."""


class Place:
    """A place in a document. Values that repeat a key share the place."""

    __slots__ = ("_above", "_inner", "_name", "told")

    def __init__(self, above: Place | None = None, name: str = "") -> None:
        self._above = above
        self._name = name
        self._inner: dict[str | int, Place] = {}
        self.told: tuple[str, ...] = ()
        """The complaints that were made about this place."""

    def at(self, key: str | int) -> Place:
        """The place of a key of an object, or of an index of a list."""
        found = self._inner.get(key)
        if found is None:
            found = self._inner[key] = Place(self, f"[{key}]" if isinstance(key, int) else f".{key}")
        return found

    def path(self) -> str:
        """The path as messages show it: `spec.containers[0].name`."""
        names = []
        place: Place | None = self
        while place is not None:
            names.append(place._name)
            place = place._above
        return "".join(reversed(names)).removeprefix(".")


class Complaints:
    """Complaints in the order of the text, each once."""

    __slots__ = ("_room", "found")

    def __init__(self) -> None:
        self.found: list[str] = []
        self._room = LIMIT_TEXT

    @property
    def full(self) -> bool:
        return self._room < 0 or len(self.found) >= LIMIT

    def add(self, what: str, place: Place) -> None:
        """Complain about a field that is `what`: unknown or duplicate."""
        if what in place.told or self.full:
            return
        place.told += (what,)
        complaint = f"{what} field {quoted(place.path())}"
        self._room -= len(complaint)
        self.found.append(complaint)


class Repeats:
    """The objects of a parsed text that name a key more than once, with every pair that the text has of them.

    The objects themselves are plain dicts: the last value of a key counts."""

    __slots__ = ("_pairs", "sorted")

    def __init__(self) -> None:
        self.sorted: set[int] = set()
        """The identities of objects that were written again, with sorted keys."""
        self._pairs: dict[int, tuple[dict[str, Any], list[tuple[str, Any]]]] = {}
        """By the identity of the object, which is kept alive as long as its identity means it."""

    def __bool__(self) -> bool:
        return bool(self._pairs)

    def made(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """The object of these pairs: a hook for the parser."""
        value = dict(pairs)
        if len(value) != len(pairs):
            self._pairs[id(value)] = value, pairs
        return value

    def pairs(self, value: dict[str, Any]) -> Iterable[tuple[str, Any]]:
        """Every key and value of an object as the text has them."""
        known = self._pairs.get(id(value))
        if known is not None:
            return known[1]
        return sorted(value.items()) if id(value) in self.sorted else value.items()

    def copy(self) -> Repeats:
        same = Repeats()
        same._pairs = self._pairs.copy()
        return same

    def copy_of(self, value: Any) -> Any:
        """A copy of a value that repeats the same keys."""
        if isinstance(value, dict):
            return self.made([(key, self.copy_of(inner)) for key, inner in self.pairs(value)])
        if isinstance(value, list):
            return [self.copy_of(inner) for inner in value]
        return value

    def forget(self, value: Any) -> None:
        """From now on an object has each key once."""
        self._pairs.pop(id(value), None)

    def forget_all(self, value: Any) -> None:
        """The same of an object or list and of everything in it."""
        if isinstance(value, dict):
            self.forget(value)
            for inner in value.values():
                self.forget_all(inner)
        elif isinstance(value, list):
            for inner in value:
                self.forget_all(inner)

    def duplicate(self, value: Any) -> list[str]:
        """A complaint for every key that an object of the value names again."""
        found = Complaints()
        if self._pairs:
            self._find(value, Place(), found)
        return found.found

    def _find(self, value: Any, place: Place, found: Complaints) -> None:
        if found.full:
            return
        if isinstance(value, list):
            for index, inner in enumerate(value):
                if isinstance(inner, (dict, list)):
                    self._find(inner, place.at(index), found)
            return
        seen = set()
        for key, inner in self.pairs(value):
            if key in seen:
                found.add("duplicate", place.at(key))
            seen.add(key)
            if isinstance(inner, (dict, list)):
                self._find(inner, place.at(key), found)
