"""Complaints about fields of a document: `unknown field "spec.foo"`, `duplicate field "metadata.name"`.

The cost is linear in the size of the document, because a path becomes text only when a complaint names it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kubist.base.jsontext.quoting import quoted

LIMIT = 100
"""Maximum number of complaints about one document."""
LIMIT_TEXT = 256 << 10
"""Maximum length in characters of all complaints about one document."""


class Place:
    """Position in a document. The values of a duplicate key share one place."""

    __slots__ = ("_above", "_inner", "_name", "reported")

    def __init__(self, above: Place | None = None, name: str = "") -> None:
        self._above = above
        self._name = name
        self._inner: dict[str | int, Place] = {}
        self.reported: tuple[str, ...] = ()
        """Complaints already made about this place."""

    def at(self, key: str | int) -> Place:
        """Place of a key of an object, or of an index of a list."""
        place = self._inner.get(key)
        if place is None:
            place = self._inner[key] = Place(self, f"[{key}]" if isinstance(key, int) else f".{key}")
        return place

    def path(self) -> str:
        """Path in the form of messages: `spec.containers[0].name`."""
        names = []
        place: Place | None = self
        while place is not None:
            names.append(place._name)
            place = place._above
        return "".join(reversed(names)).removeprefix(".")


class Complaints:
    """Complaints in the order of the text, without duplicates."""

    __slots__ = ("_room", "messages")

    def __init__(self) -> None:
        self.messages: list[str] = []
        self._room = LIMIT_TEXT

    @property
    def full(self) -> bool:
        return self._room < 0 or len(self.messages) >= LIMIT

    def add(self, what: str, place: Place) -> None:
        """Adds a complaint. `what` is "unknown" or "duplicate"."""
        if what in place.reported or self.full:
            return
        place.reported += (what,)
        complaint = f"{what} field {quoted(place.path())}"
        self._room -= len(complaint)
        self.messages.append(complaint)


class Repeats:
    """Objects of a parsed text with duplicate keys, and all their key-value pairs.

    The objects themselves are plain dicts with the last value of each key.
    """

    __slots__ = ("_pairs", "sorted")

    def __init__(self) -> None:
        self.sorted: set[int] = set()
        """Identities of objects that were encoded again with sorted keys."""
        self._pairs: dict[int, tuple[dict[str, Any], list[tuple[str, Any]]]] = {}
        """Pairs by the identity of the object. The object is kept alive so that its identity stays valid."""

    def __bool__(self) -> bool:
        return bool(self._pairs)

    def made(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """Object with these pairs. The parser calls it for each object."""
        value = dict(pairs)
        if len(value) != len(pairs):
            self._pairs[id(value)] = value, pairs
        return value

    def pairs(self, value: dict[str, Any]) -> Iterable[tuple[str, Any]]:
        """All keys and values of an object, as in the text."""
        known = self._pairs.get(id(value))
        if known is not None:
            return known[1]
        return sorted(value.items()) if id(value) in self.sorted else value.items()

    def copy(self) -> Repeats:
        same = Repeats()
        same._pairs = self._pairs.copy()
        return same

    def copy_of(self, value: Any) -> Any:
        """Copy of a value with the same duplicate keys."""
        if isinstance(value, dict):
            return self.made([(key, self.copy_of(inner)) for key, inner in self.pairs(value)])
        if isinstance(value, list):
            return [self.copy_of(inner) for inner in value]
        return value

    def forget(self, value: Any) -> None:
        """Drops the duplicate keys of an object."""
        self._pairs.pop(id(value), None)

    def forget_all(self, value: Any) -> None:
        """Drops the duplicate keys of a value and of everything in it."""
        if isinstance(value, dict):
            self.forget(value)
            for inner in value.values():
                self.forget_all(inner)
        elif isinstance(value, list):
            for inner in value:
                self.forget_all(inner)

    def duplicate(self, value: Any) -> list[str]:
        """Complaints about all duplicate keys in the value."""
        complaints = Complaints()
        if self._pairs:
            self._find(value, Place(), complaints)
        return complaints.messages

    def _find(self, value: Any, place: Place, complaints: Complaints) -> None:
        if complaints.full:
            return
        if isinstance(value, list):
            for index, inner in enumerate(value):
                if isinstance(inner, (dict, list)):
                    self._find(inner, place.at(index), complaints)
            return
        seen = set()
        for key, inner in self.pairs(value):
            if key in seen:
                complaints.add("duplicate", place.at(key))
            seen.add(key)
            if isinstance(inner, (dict, list)):
                self._find(inner, place.at(key), complaints)
