"""Past: a collection at an earlier revision, as the current entries with later changes undone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sortedcontainers import SortedDict

from kubist.storage.cache.entry import Change, Entry


class Past:
    """Sorted mapping of the entries at an earlier revision.

    It reads the current entries, so it is valid until the next change. Calling `undo` with that change makes it
    valid again.
    """

    __slots__ = ("_before", "_today", "seen", "size")

    def __init__(self, today: SortedDict[str, Entry], revision: int) -> None:
        self._today = today
        self._before: SortedDict[str, Entry | None] = SortedDict()
        """Entries of changed keys at the earlier revision. None: the key did not exist."""
        self.seen = revision
        """Revision of the last undone change."""
        self.size = 0
        """Bytes of entries that only this object may keep alive."""

    def __len__(self) -> int:
        return len(self._before)

    def undo(self, changes: Iterable[Change]) -> None:
        """Undoes further changes, in order. The first change of a key has its earlier entry."""
        for change in changes:
            entry = change.old or change.new
            assert entry is not None
            self.put(entry.key, change.old)
            self.seen = change.revision

    def put(self, key: str, entry: Entry | None) -> None:
        if key not in self._before:
            self._before[key] = entry
            self.size += 200 + (len(entry.tail) if entry is not None else 0)

    def __getitem__(self, key: str) -> Entry:
        if key not in self._before:
            current: Entry = self._today[key]
            return current
        entry: Entry | None = self._before[key]
        if entry is None:
            raise KeyError(key)
        return entry

    def irange(
        self,
        minimum: str | None = None,
        maximum: str | None = None,
        inclusive: tuple[bool, bool] = (True, True),
    ) -> Iterator[str]:
        """Keys in order: merges the changed and the current keys. A changed key wins over the current one."""
        before = self._before
        changed = before.irange(minimum, maximum, inclusive)
        other = next(changed, None)
        for key in self._today.irange(minimum, maximum, inclusive):
            while other is not None and other < key:
                if before[other] is not None:
                    yield other
                other = next(changed, None)
            if other == key:
                if before[key] is not None:
                    yield key
                other = next(changed, None)
            else:
                yield key
        while other is not None:
            if before[other] is not None:
                yield other
            other = next(changed, None)

    def items(self) -> Iterator[tuple[str, Entry]]:
        return ((key, self[key]) for key in self.irange())

    def bisect_left(self, key: str) -> int:
        place: int = self._today.bisect_left(key)
        return place + self._shift(key, inclusive=False)

    def bisect_right(self, key: str) -> int:
        place: int = self._today.bisect_right(key)
        return place + self._shift(key, inclusive=True)

    def _shift(self, key: str, *, inclusive: bool) -> int:
        """Number of keys up to `key` at the earlier revision minus the number now."""
        before, today = self._before, self._today
        changed = before.irange(None, key, (True, inclusive))
        return sum((before[other] is not None) - (other in today) for other in changed)
