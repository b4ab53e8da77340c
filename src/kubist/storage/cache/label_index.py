"""Label indexes: entries of a collection by the value of a label. An index is built on first use and then
updated with the collection."""

from __future__ import annotations

import asyncio

from sortedcontainers import SortedDict

from kubist.storage.cache.entry import Entry

INDEXES = 32
"""Maximum number of indexed labels of a collection. Beyond it, the oldest index is dropped."""
SLICE = 200
"""Entries read before other tasks get a turn on the event loop."""


class LabelIndex:
    """Index of one label.

    The entries of a value are sorted by key on first use and kept until one of them changes. A lookup therefore
    costs as much as its result is long.
    """

    __slots__ = ("_by_value", "_label", "_ordered", "complete")

    def __init__(self, label: str) -> None:
        self._label = label
        self._by_value: dict[str, dict[str, Entry]] = {}
        self._ordered: dict[str, list[Entry]] = {}
        self.complete = False

    def add(self, entry: Entry) -> None:
        value = entry.labels.get(self._label)
        if value is not None:
            self._by_value.setdefault(value, {})[entry.key] = entry
            self._ordered.pop(value, None)

    def remove(self, entry: Entry) -> None:
        value = entry.labels.get(self._label)
        by_key = self._by_value.get(value) if value is not None else None
        if value is not None and by_key is not None and by_key.pop(entry.key, None) is not None:
            self._ordered.pop(value, None)
            if not by_key:
                del self._by_value[value]

    def find(self, value: str) -> list[Entry]:
        entries = self._ordered.get(value)
        if entries is None:
            by_key = self._by_value.get(value)
            if by_key is None:
                return []
            entries = self._ordered[value] = [by_key[key] for key in sorted(by_key)]
        return entries


class LabelIndexes:
    """All label indexes of one collection. The caller passes the `entries` of the collection."""

    def __init__(self) -> None:
        self._indexes: dict[str, LabelIndex] = {}
        self._examined = False
        """Whether the labels and fields of all entries have been parsed."""
        self._examining: dict[str | None, asyncio.Task[None]] = {}

    def clear(self) -> None:
        self._indexes = {}
        self._examined = False
        self._examining = {}

    def move(self, old: Entry | None, new: Entry | None) -> None:
        for index in self._indexes.values():
            if old is not None:
                index.remove(old)
            if new is not None:
                index.add(new)

    async def examine(self, entries: SortedDict[str, Entry], label: str | None) -> None:
        """Parses the labels and fields of all entries, and builds the index of `label`, in slices. The first call takes
        a long time; later calls return at once."""
        index = self._indexes.get(label) if label is not None else None
        if index.complete if index is not None else self._examined and label is None:
            return
        task = self._examining.get(label)
        if task is None:
            task = self._examining[label] = asyncio.ensure_future(self._examine(entries, label))
            task.add_done_callback(lambda _: self._examining.pop(label, None))
        await asyncio.shield(task)

    async def _examine(self, entries: SortedDict[str, Entry], label: str | None) -> None:
        indexes = self._indexes
        index = self._new(label) if label is not None else None
        for place, key in enumerate(list(entries)):
            if place % SLICE == 0:
                await asyncio.sleep(0)
            entry: Entry | None = entries.get(key)
            if entry is not None and entry.labels and index is not None:
                index.add(entry)
        if indexes is self._indexes:
            self._examined = True
            if index is not None:
                index.complete = True

    def find(self, entries: SortedDict[str, Entry], label: str, value: str) -> list[Entry]:
        """Entries that have `label` with `value`, in key order."""
        index = self._indexes.get(label)
        if index is None or not index.complete:
            index = self._new(label)
            for entry in entries.values():
                index.add(entry)
            index.complete = True
        return index.find(value)

    def _new(self, label: str) -> LabelIndex:
        if len(self._indexes) >= INDEXES:
            del self._indexes[next(iter(self._indexes))]
        index = self._indexes[label] = LabelIndex(label)
        return index
