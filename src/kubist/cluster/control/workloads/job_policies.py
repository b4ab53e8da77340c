"""Policies of a Job: podFailurePolicy decides about failed pods, successPolicy about completed indexes.

Indexes are ordered intervals. Their text in the status is such as `1,3-5,7`.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kubist.model.meta.object import Object

_Interval = tuple[int, int]
"""First and last index."""


class Intervals:
    """Set of indexes. Neighbouring indexes share an interval."""

    __slots__ = ("pairs",)

    def __init__(self, pairs: Iterable[_Interval] = ()) -> None:
        self.pairs: list[_Interval] = list(pairs)

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
        pairs: list[_Interval] = []
        for first, last in sorted(self.pairs + other.pairs):
            if pairs and first <= pairs[-1][1] + 1:
                pairs[-1] = (pairs[-1][0], max(pairs[-1][1], last))
            else:
                pairs.append((first, last))
        return Intervals(pairs)

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
    pairs: list[_Interval] = []
    for part in text.split(",") if text else ():
        limits = part.split("-")
        try:
            first, last = int(limits[0]), int(limits[1] if len(limits) > 1 else limits[0])
        except ValueError:
            continue
        if first >= completions:
            break
        last = min(last, completions - 1)
        if pairs and pairs[-1][1] == first - 1:
            pairs[-1] = (pairs[-1][0], last)
        else:
            pairs.append((first, last))
    return Intervals(pairs)


def _text(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first},{last}" if last == first + 1 else f"{first}-{last}"


class Verdict(NamedTuple):
    """Result of a podFailurePolicy for one failed pod."""

    counts: bool = True
    """Whether the failure counts towards the back-off limits."""
    fails_index: bool = False
    message: str = ""
    """Message of the Failed condition if the failure fails the Job."""


COUNTED = Verdict()


def judge(job: Object, pod: Object) -> Verdict:
    """Applies the first matching rule of the Job's podFailurePolicy to a failed pod."""
    for number, rule in enumerate((job["spec"].get("podFailurePolicy") or {}).get("rules") or ()):
        why = _match(rule, pod)
        if why:
            action = rule["action"]
            if action == "FailJob":
                return Verdict(message=f"{why} matching FailJob rule at index {number}")
            return Verdict(counts=action != "Ignore", fails_index=action == "FailIndex")
    return COUNTED


def _match(rule: Object, pod: Object) -> str:
    """Reason why a rule matches a pod. Empty if it does not match."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    pod_name = f"{metadata['namespace']}/{metadata['name']}"
    if "onExitCodes" in rule:
        for part in ("containerStatuses", "initContainerStatuses"):
            for container in status.get(part) or ():
                if _matches_exit_code(rule["onExitCodes"], container):
                    code = container["state"]["terminated"]["exitCode"]
                    return f"Container {container['name']} for pod {pod_name} failed with exit code {code}"
        return ""
    patterns = [
        (pattern["type"], pattern.get("status", "True")) for pattern in rule.get("onPodConditions") or ()
    ]
    for condition in status.get("conditions") or ():
        if (condition["type"], condition["status"]) in patterns:
            return f"Pod {pod_name} has condition {condition['type']}"
    return ""


def _matches_exit_code(requirement: Object, container: Object) -> bool:
    ended = (container.get("state") or {}).get("terminated")
    if not ended or requirement.get("containerName") not in (None, container["name"]):
        return False
    code = ended.get("exitCode", 0)
    is_listed = code in requirement["values"]
    return bool(code) and is_listed == (requirement["operator"] == "In")


def met_success_rule(job: Object, succeeded: Intervals) -> int | None:
    """Number of the first rule of the Job's successPolicy that the completed indexes meet."""
    if not succeeded.pairs:
        return None
    for number, rule in enumerate((job["spec"].get("successPolicy") or {}).get("rules") or ()):
        count = rule.get("succeededCount")
        if "succeededIndexes" in rule:
            indexes = parse_indexes(rule["succeededIndexes"], job["spec"]["completions"])
            if not indexes.pairs:
                continue
            overlap = indexes.overlap(succeeded)
            if overlap == len(indexes) or (count is not None and overlap >= count):
                return number
        elif count is not None and len(succeeded) >= count:
            return number
    return None
