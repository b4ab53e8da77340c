"""Something made of every object of a collection, made anew when the object changes: configurations, policies."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from kubist.registry import Registry
    from kubist.storage.cache import Change

Object = dict[str, Any]
T = TypeVar("T")


class Followed(Generic[T]):
    """What `make` makes of the objects of a resource, in the order of their names."""

    def __init__(self, registry: Registry, group: str, resource: str, make: Callable[[Object], T]) -> None:
        found = registry.resources.stored(group, resource)
        assert found is not None
        self._make = make
        self._collection = registry.collection(found)
        self._entries: object = None
        self._made: dict[str, T] = {}
        self._items: list[T] | None = None
        self.generation = 0
        """Rises with every change."""
        self._collection.subscribe(self, self._changed)

    def _changed(self, changes: list[Change]) -> None:
        for change in changes:
            entry = change.new or change.old
            assert entry is not None
            self._made.pop(entry.key, None)
        self._items = None
        self.generation += 1

    @property
    def items(self) -> list[T]:
        entries = self._collection.entries
        if entries is not self._entries:
            self._entries, self._items = entries, None
            self._made.clear()
            self.generation += 1
        if self._items is None:
            for key, entry in entries.items():
                if key not in self._made:
                    self._made[key] = self._make(entry.object())
            self._items = [self._made[key] for key in entries]
        return self._items
