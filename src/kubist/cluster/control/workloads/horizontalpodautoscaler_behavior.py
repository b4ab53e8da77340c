"""Limits of a HorizontalPodAutoscaler on scaling: stabilization windows, rates, minReplicas and maxReplicas."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from kubist.model.meta.object import Object

DOWNSCALE_WINDOW = 300.0
"""Default stabilization window for scaling down, in seconds."""
LONGEST_WINDOW = 3600.0
"""Longest stabilization window and policy period that validation allows, in seconds."""
UP_FACTOR, UP_LEAST = 2, 4
"""Limit without behavior: scaling up at most doubles the replicas, or raises them to 4."""


class Limited(NamedTuple):
    """Replicas, and the conditions that tell how they were limited: reason and message."""

    replicas: int
    able_to_scale: tuple[str, str]
    scaling_limited: tuple[str, str]
    is_limited: bool


@dataclass(slots=True)
class History:
    """Recent recommendations and changes of one autoscaler: time and number of replicas."""

    recommendations: list[tuple[float, int]] = field(default_factory=list)
    raised: list[tuple[float, int]] = field(default_factory=list)
    lowered: list[tuple[float, int]] = field(default_factory=list)

    def add_change(self, old: int, new: int, now: float) -> None:
        (self.raised if new > old else self.lowered).append((now, abs(new - old)))

    def forget(self, now: float) -> None:
        """Drops entries that no window and no period reaches."""
        for entries in (self.recommendations, self.raised, self.lowered):
            entries[:] = [entry for entry in entries if entry[0] >= now - LONGEST_WINDOW]


READY = ("ReadyForNewScale", "recommended size matches current size")
DOWN_STABILIZED = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
)
UP_STABILIZED = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
)
WITHIN = ("DesiredWithinRange", "the desired count is within the acceptable range")
UP_LIMIT = ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate")
DOWN_LIMIT = ("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate")
TOO_MANY = ("TooManyReplicas", "the desired replica count is more than the maximum replica count")
TOO_FEW = ("TooFewReplicas", "the desired replica count is less than the minimum replica count")


def limit(spec: Object, history: History, current: int, desired: int, now: float) -> Limited:
    """Applies the limits of an autoscaler to the replicas that its metrics ask for, and records them."""
    history.forget(now)
    behavior = spec.get("behavior")
    if behavior is None:
        return _limit_by_default(spec, history, current, desired, now)
    up, down = behavior["scaleUp"], behavior["scaleDown"]
    stable = _stabilize(up, down, history, current, desired, now)
    stabilized = UP_STABILIZED if desired >= current else DOWN_STABILIZED
    replicas, reason = stable, WITHIN
    if stable > current:
        most = max(_rate_limit(up, history, current, now, 1), current)
        most, reason_above = (
            (most, UP_LIMIT) if most < spec["maxReplicas"] else (spec["maxReplicas"], TOO_MANY)
        )
        if stable > most:
            replicas, reason = most, reason_above
    elif stable < current:
        least = min(_rate_limit(down, history, current, now, -1), current)
        floor = spec.get("minReplicas", 1)
        least, reason_below = (least, DOWN_LIMIT) if least > floor else (floor, TOO_FEW)
        if stable < least:
            replicas, reason = least, reason_below
    return Limited(replicas, READY if stable == desired else stabilized, reason, replicas != stable)


def _limit_by_default(spec: Object, history: History, current: int, desired: int, now: float) -> Limited:
    """Limits without behavior: a window for scaling down, and doubling for scaling up."""
    recent = [replicas for time, replicas in history.recommendations if time >= now - DOWNSCALE_WINDOW]
    stable = max([desired, *recent])
    history.recommendations.append((now, desired))
    floor, ceiling = spec.get("minReplicas", 1), spec["maxReplicas"]
    rate = max(UP_FACTOR * current, UP_LEAST)
    most, reason_above = (rate, UP_LIMIT) if rate < ceiling else (ceiling, TOO_MANY)
    replicas, reason = stable, WITHIN
    if stable < floor:
        replicas, reason = floor, TOO_FEW
    elif stable > most:
        replicas, reason = most, reason_above
    return Limited(replicas, READY if stable == desired else DOWN_STABILIZED, reason, replicas != stable)


def _stabilize(up: Object, down: Object, history: History, current: int, desired: int, now: float) -> int:
    """Recommendation that the windows allow: the lowest recent one for scaling up, the highest for scaling down."""
    up_start = now - up.get("stabilizationWindowSeconds", 0)
    down_start = now - down.get("stabilizationWindowSeconds", DOWNSCALE_WINDOW)
    lowest = min([desired, *(replicas for time, replicas in history.recommendations if time > up_start)])
    highest = max([desired, *(replicas for time, replicas in history.recommendations if time > down_start)])
    history.recommendations.append((now, desired))
    return min(max(current, lowest), highest)


def _rate_limit(rules: Object, history: History, current: int, now: float, sign: int) -> int:
    """Replicas that the policies allow. `sign` is 1 for scaling up and -1 for scaling down."""
    select = rules.get("selectPolicy", "Max")
    if select == "Disabled":
        return current
    proposals = []
    for policy in rules["policies"]:
        start = now - policy["periodSeconds"]
        base = current - _changed_since(history.raised, start) + _changed_since(history.lowered, start)
        if policy["type"] == "Pods":
            proposals.append(base + sign * policy["value"])
        elif sign > 0:
            proposals.append(math.ceil(base * (1 + policy["value"] / 100)))
        else:
            proposals.append(int(base * (1 - policy["value"] / 100)))
    choose: Callable[[list[int]], int] = max if (select == "Min") == (sign < 0) else min
    return choose(proposals)


def _changed_since(changes: list[tuple[float, int]], start: float) -> int:
    return sum(replicas for time, replicas in changes if time > start)
