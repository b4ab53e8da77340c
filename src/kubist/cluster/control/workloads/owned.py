"""Index of managed objects by the UID of their controller, and of orphans by namespace."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from kubist.cluster.control.loop import controller_of, entry_of
from kubist.model.meta.object import Object
from kubist.storage.cache.cache import Change, Entry

OWNERS = b'"ownerReferences":['


class Owner(NamedTuple):
    """Controller of an object, from its ownerReference. Orphans have an empty name."""

    uid: str
    name: str


ORPHAN = Owner("", "")


class OwnedIndex:
    """Objects of one resource that controllers of one kind own, and objects without any controller."""

    def __init__(self, kind: str, parse: Callable[[Entry], Object]) -> None:
        self._kind = kind
        self._parse = parse
        self._owners: dict[str, Owner] = {}
        """Owner of every indexed object, by the key of the object."""
        self._owned: dict[str, dict[str, Entry]] = {}
        """By the UID of the owner."""
        self._orphans: dict[str, dict[str, Entry]] = {}
        """By namespace."""

    def apply(self, change: Change) -> tuple[Owner | None, Owner | None]:
        """Records a change. Returns the owner before and after it; None for an object that is not indexed."""
        entry = entry_of(change)
        before = self._owners.pop(entry.key, None)
        if before is not None:
            group = self._group(before, entry.namespace)
            group.pop(entry.key, None)
            if not group:
                (self._owned if before.uid else self._orphans).pop(before.uid or entry.namespace, None)
        after = self._owner(change.new) if change.new is not None else None
        if after is not None:
            self._owners[entry.key] = after
            self._group(after, entry.namespace)[entry.key] = entry
        return before, after

    def owned(self, uid: str) -> Iterable[Entry]:
        return list(self._owned.get(uid, {}).values())

    def orphans(self, namespace: str) -> Iterable[Entry]:
        return list(self._orphans.get(namespace, {}).values())

    def _group(self, owner: Owner, namespace: str) -> dict[str, Entry]:
        if owner.uid:
            return self._owned.setdefault(owner.uid, {})
        return self._orphans.setdefault(namespace, {})

    def _owner(self, entry: Entry) -> Owner | None:
        reference = controller_of(self._parse(entry)) if OWNERS in entry.tail else None
        if reference is None:
            return ORPHAN
        if reference.get("kind") != self._kind:
            return None
        return Owner(reference.get("uid", ""), reference.get("name", ""))
