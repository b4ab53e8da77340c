"""A collection as it was at an earlier revision: today's entries, with what has changed since undone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sortedcontainers import SortedDict

from kubist.storage.entry import Change, Entry


class Past:
    """Reads like a sorted dict of entries. It looks at today's, so it holds until the next change; told of that
    by `undo`, it holds again."""

    __slots__ = ("_before", "_today", "seen", "size")

    def __init__(self, today: SortedDict[str, Entry], revision: int) -> None:
        self._today = today
        self._before: SortedDict[str, Entry | None] = SortedDict()
        """What changed keys held then; None: nothing."""
        self.seen = revision
        """The revision of the last change undone."""
        self.size = 0
        """Bytes of entries that may be kept for this alone."""

    def __len__(self) -> int:
        return len(self._before)

    def undo(self, changes: Iterable[Change]) -> None:
        """Further changes, in order: the first of a key says what it held before all of them."""
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
            found: Entry = self._today[key]
            return found
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
        """Keys in order: two sorted runs as one, of which the changed one is right where they meet."""
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
        """How many more there were then, up to a key."""
        before, today = self._before, self._today
        changed = before.irange(None, key, (True, inclusive))
        return sum((before[other] is not None) - (other in today) for other in changed)
