"""Index of dependents by the UIDs of their owners, kept up to date from changes in all collections."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from kubist.model.meta.object import Object
from kubist.storage.cache.cache import Change, Collection, Entry

OWNERS = b'"ownerReferences":['
_UID = re.compile(rb'"uid":"([^"]+)"')


class Ref(NamedTuple):
    """Reference to an object: the prefix of its collection and its key."""

    prefix: str
    key: str


class Owners:
    """Dependents of every owner. Objects without ownerReferences are not parsed."""

    def __init__(self, parse: Callable[[Entry], Object] = Entry.object) -> None:
        """`parse` may return an object that others share."""
        self._parse = parse
        self._dependents: dict[str, dict[Ref, bool]] = {}
        """By the owner's UID. The value is whether the dependent blocks the owner's foreground deletion."""
        self._owners: dict[Ref, tuple[str, ...]] = {}

    def add(self, prefix: str, entry: Entry) -> bool:
        """Records a version of an object. Returns whether it has owners."""
        ref = Ref(prefix, entry.key)
        if OWNERS not in entry.tail:
            self._remove(ref)
            return False
        references = self._parse(entry)["metadata"].get("ownerReferences") or ()
        self._remove(ref)
        if not references:
            return False
        self._owners[ref] = tuple(reference.get("uid", "") for reference in references)
        for reference in references:
            blocks = bool(reference.get("blockOwnerDeletion"))
            self._dependents.setdefault(reference.get("uid", ""), {})[ref] = blocks
        return True

    def remove(self, prefix: str, key: str) -> None:
        self._remove(Ref(prefix, key))

    def remove_all(self, prefix: str) -> None:
        for ref in [ref for ref in self._owners if ref.prefix == prefix]:
            self._remove(ref)

    def _remove(self, ref: Ref) -> None:
        for uid in self._owners.pop(ref, ()):
            dependents = self._dependents.get(uid)
            if dependents is not None:
                dependents.pop(ref, None)
                if not dependents:
                    del self._dependents[uid]

    def dependents(self, uid: str) -> list[Ref]:
        return list(self._dependents.get(uid, ()))

    def blocking(self, uid: str) -> list[Ref]:
        return [ref for ref, blocks in self._dependents.get(uid, {}).items() if blocks]

    def owned_by(self, prefix: str, key: str) -> tuple[str, ...]:
        """UIDs of an object's owners, as last recorded."""
        return self._owners.get(Ref(prefix, key), ())

    def may_own(self, entry: Entry) -> bool:
        """Whether the object may have dependents: any UID in its text has some. False positives are possible."""
        return any(uid.decode() in self._dependents for uid in _UID.findall(entry.tail))


def load(owners: Owners, collection: Collection) -> list[Ref]:
    """Records all objects of a collection. Returns those with owners."""
    prefix = collection.kind.prefix
    owners.remove_all(prefix)
    return [Ref(prefix, entry.key) for entry in collection.entries.values() if owners.add(prefix, entry)]


def uid_of(change: Change) -> str:
    entry = change.old or change.new
    assert entry is not None
    uid: str = entry.object()["metadata"].get("uid", "")
    return uid
