"""Values derived from the objects of a collection, computed once for each object version."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from kubist.base.caching import BoundedCache
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.object_store.registry import Registry
    from kubist.storage.cache.cache import Change

T = TypeVar("T")


class Followed(Generic[T]):
    """Results of `make` for the objects of a resource, kept up to date by the change feed. It costs nothing between
    changes."""

    def __init__(self, registry: Registry, group: str, resource: str, make: Callable[[Object], T]) -> None:
        stored_resource = registry.resources.stored(group, resource)
        assert stored_resource is not None
        self._make = make
        self._resource = stored_resource
        self.collection = registry.collection(stored_resource)
        self._entries: object = None
        self._made: dict[str, T] = {}
        self._items: list[T] | None = None
        self._within: BoundedCache[str, list[T]] = BoundedCache(entries=4096, key_length=63)
        self.generation = 0
        """Counter that increases with every change."""
        self.collection.subscribe(self, self._changed)

    def _changed(self, changes: list[Change]) -> None:
        for change in changes:
            entry = change.new or change.old
            assert entry is not None
            self._made.pop(entry.key, None)
        self._items = None
        self._within.clear()
        self.generation += 1

    def _refill(self) -> None:
        """Drops all values after the whole collection was reloaded."""
        self._entries, self._items = self.collection.entries, None
        self._made.clear()
        self._within.clear()
        self.generation += 1

    def _of(self, key: str) -> T:
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = self._make(self.collection.entries[key].object())
        return made

    @property
    def items(self) -> list[T]:
        """Values of all objects, in the order of the objects' names."""
        if self.collection.entries is not self._entries:
            self._refill()
        if self._items is None:
            self._items = [self._of(key) for key in self.collection.entries]
        return self._items

    def within(self, namespace: str) -> list[T]:
        """Values of the objects in a namespace."""
        if not self.collection.entries:
            return []
        if self.collection.entries is not self._entries:
            self._refill()
        values = self._within.get(namespace)
        if values is None:
            below = self.collection.below(self._resource.key(namespace, ""))
            values = self._within[namespace] = [self._of(entry.key) for entry in below]
        return values

    def get(self, name: str, namespace: str = "") -> T | None:
        """Value of one object, None if the object does not exist."""
        if self.collection.entries is not self._entries:
            self._refill()
        key = self._resource.key(namespace, name)
        return self._of(key) if key in self.collection.entries else None
