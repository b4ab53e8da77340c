"""Completion indexes of a Job as text: ascending numbers and intervals, for example `1,3-5,7`."""

from __future__ import annotations

from collections.abc import Iterator

from kubist.base.jsontext.quoting import quoted
from kubist.model.meta.numerals import parse_int64


class IndexesError(ValueError):
    """Text that is not a valid list of the Job's indexes."""


def count(text: str, completions: int) -> int:
    """Number of indexes in the text."""
    total = 0
    last = None
    for interval in text.split(",") if text else ():
        first, end = _interval(interval, completions)
        if last is not None and last >= first:
            raise IndexesError(f"non-increasing order, previous: {last}, current: {first}")
        total += end - first + 1
        last = end
    return total


def overlap(completed: str, failed: str, completions: int) -> int | None:
    """First index in both texts; None if they do not overlap. Invalid intervals are skipped."""
    if not completed or not failed:
        return None
    ours, theirs = _readable(completed, completions), _readable(failed, completions)
    done, bad = next(ours, None), next(theirs, None)
    while done is not None and bad is not None:
        if done[0] <= bad[1] and bad[0] <= done[1]:
            return max(done[0], bad[0])
        if done[0] <= bad[0]:
            done = next(ours, None)
        else:
            bad = next(theirs, None)
    return None


def _readable(text: str, completions: int) -> Iterator[tuple[int, int]]:
    for interval in text.split(","):
        try:
            yield _interval(interval, completions)
        except IndexesError:
            continue


def _interval(text: str, completions: int) -> tuple[int, int]:
    limits = text.split("-")
    if len(limits) > 2:
        raise IndexesError(
            f"the fragment {quoted(text)} violates the requirement that an index interval can have at most "
            "two parts separated by '-'"
        )
    first = _index(limits[0], completions)
    if len(limits) == 1:
        return first, first
    last = _index(limits[1], completions)
    if first >= last:
        raise IndexesError(f"non-increasing order, previous: {first}, current: {last}")
    return first, last


def _index(text: str, completions: int) -> int:
    index = parse_int64(text)
    if index is None:
        raise IndexesError(f"cannot convert string to integer for index: {quoted(text)}")
    if index >= completions:
        raise IndexesError(f"too large index: {quoted(text)}")
    return index
