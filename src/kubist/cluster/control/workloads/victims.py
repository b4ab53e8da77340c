"""Pods that a ReplicaSet deletes first when it scales down, in kube-controller-manager's order."""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from kubist.cluster.control.values import pod_active, pod_ready
from kubist.model.meta.conditions import find
from kubist.model.meta.object import Object
from kubist.model.meta.times import parse_time

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
_is_cost = re.compile("-[0-9]+|0|[1-9][0-9]*").fullmatch


class _Rank(NamedTuple):
    """Properties of a pod that decide its place. `first` is compared before the others."""

    first: tuple[bool, int, bool, int, int]
    ready_time: float
    """0 for a pod that is not ready."""
    restarts: tuple[int, int]
    created: float
    uid: str
    pod: Object


def victims(pods: list[Object], related: Iterable[Object], count: int, now: float) -> list[Object]:
    """The `count` pods to delete first: pods without a node, then pending, not ready, cheap to delete, sharing their
    node with many related pods, recently ready, often restarted, and young ones. Ages are compared by their order of
    magnitude."""
    if count >= len(pods):
        return pods
    on_node = Counter(pod["spec"].get("nodeName") for pod in related if pod_active(pod))
    ranks = [_rank(pod, on_node[pod["spec"].get("nodeName")]) for pod in pods]
    ranks.sort(key=functools.cmp_to_key(functools.partial(_compare, now)))
    return [rank.pod for rank in ranks[:count]]


def _rank(pod: Object, neighbours: int) -> _Rank:
    status, ready = pod["status"], pod_ready(pod)
    ready_since = (find(status.get("conditions"), "Ready") or {}).get("lastTransitionTime") if ready else None
    return _Rank(
        (
            bool(pod["spec"].get("nodeName")),
            PHASES.get(status.get("phase", "Pending"), 0),
            ready,
            deletion_cost(pod),
            -neighbours,
        ),
        parse_time(ready_since) if ready_since else 0,
        (-_restarts(status.get("containerStatuses")), -_restarts(status.get("initContainerStatuses"))),
        parse_time(pod["metadata"]["creationTimestamp"]),
        pod["metadata"]["uid"],
        pod,
    )


def _compare(now: float, one: _Rank, other: _Rank) -> int:
    if one.first != other.first:
        return -1 if one.first < other.first else 1
    if one.ready_time != other.ready_time and one.ready_time and other.ready_time:
        return _compare_ages(now, one, other, one.ready_time, other.ready_time)
    if one.restarts != other.restarts:
        return -1 if one.restarts < other.restarts else 1
    if one.created != other.created:
        return _compare_ages(now, one, other, one.created, other.created)
    return 0


def _compare_ages(now: float, one: _Rank, other: _Rank, since: float, other_since: float) -> int:
    difference = _magnitude(now - since) - _magnitude(now - other_since)
    return difference or (-1 if one.uid < other.uid else 1)


def _magnitude(age: float) -> int:
    """Binary logarithm of an age in nanoseconds."""
    return int(math.log2(age * 1e9)) if age > 0 else -1


def deletion_cost(pod: Object) -> int:
    """Value of the annotation pod-deletion-cost, a signed 32-bit number; 0 if it is malformed."""
    text = (pod["metadata"].get("annotations") or {}).get(DELETION_COST, "0")
    cost = int(text) if len(text) < 12 and _is_cost(text) else 0
    return cost if -(2**31) <= cost < 2**31 else 0


def _restarts(statuses: list[Object] | None) -> int:
    return max((status.get("restartCount", 0) for status in statuses or ()), default=0)
