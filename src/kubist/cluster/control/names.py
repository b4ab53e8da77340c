"""Names of all objects of a resource, for loops that reconcile them when other objects of the namespace change."""

from __future__ import annotations

from kubist.storage.cache.cache import Change


class NamesByNamespace:
    def __init__(self) -> None:
        self._names: dict[str, set[str]] = {}

    def __bool__(self) -> bool:
        return bool(self._names)

    def apply(self, change: Change) -> None:
        if change.new is not None:
            self._names.setdefault(change.new.namespace, set()).add(change.new.name)
        elif change.old is not None and (names := self._names.get(change.old.namespace)) is not None:
            names.discard(change.old.name)
            if not names:
                del self._names[change.old.namespace]

    def keys(self, namespace: str) -> list[tuple[str, str]]:
        """Namespace and name of every object in the namespace."""
        return [(namespace, name) for name in self._names.get(namespace, ())]
