"""Completion indexes of a Job as ordered intervals, and their text in the status, such as `1,3-5,7`."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator

Interval = tuple[int, int]
"""First and last index."""


class Intervals:
    """Set of indexes. Neighbouring indexes share an interval."""

    __slots__ = ("pairs",)

    def __init__(self, pairs: Iterable[Interval] = ()) -> None:
        self.pairs: list[Interval] = list(pairs)

    def __contains__(self, index: int) -> bool:
        position = bisect.bisect_left(self.pairs, index, key=lambda pair: pair[1])
        return position < len(self.pairs) and self.pairs[position][0] <= index

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self.pairs)

    def __str__(self) -> str:
        return ",".join(_text(first, last) for first, last in self.pairs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Intervals) and self.pairs == other.pairs

    __hash__ = None  # type: ignore[assignment]

    def with_indexes(self, indexes: Iterable[int]) -> Intervals:
        return self.merged(Intervals((index, index) for index in sorted(set(indexes))))

    def merged(self, other: Intervals) -> Intervals:
        if not other.pairs:
            return self
        found: list[Interval] = []
        for first, last in sorted(self.pairs + other.pairs):
            if found and first <= found[-1][1] + 1:
                found[-1] = (found[-1][0], max(found[-1][1], last))
            else:
                found.append((first, last))
        return Intervals(found)

    def overlap(self, other: Intervals) -> int:
        """Number of indexes that are in both sets."""
        total = ours = theirs = 0
        while ours < len(self.pairs) and theirs < len(other.pairs):
            first, last = self.pairs[ours]
            other_first, other_last = other.pairs[theirs]
            total += max(min(last, other_last) - max(first, other_first) + 1, 0)
            if last <= other_last:
                ours += 1
            if other_last <= last:
                theirs += 1
        return total

    def gaps(self, end: int) -> Iterator[int]:
        """Indexes below `end` that are not in the set, in ascending order."""
        start = 0
        for first, last in self.pairs:
            yield from range(start, min(first, end))
            start = last + 1
        yield from range(start, end)


def parse_indexes(text: str, completions: int) -> Intervals:
    """Reads the text of a status or policy. Malformed intervals and indexes from `completions` on are ignored."""
    found: list[Interval] = []
    for part in text.split(",") if text else ():
        limits = part.split("-")
        try:
            first, last = int(limits[0]), int(limits[1] if len(limits) > 1 else limits[0])
        except ValueError:
            continue
        if first >= completions:
            break
        last = min(last, completions - 1)
        if found and found[-1][1] == first - 1:
            found[-1] = (found[-1][0], last)
        else:
            found.append((first, last))
    return Intervals(found)


def _text(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first},{last}" if last == first + 1 else f"{first}-{last}"
