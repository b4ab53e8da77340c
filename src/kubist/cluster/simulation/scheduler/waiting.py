"""Unschedulable pods: which changes can help them, and when they are tried again."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kubist.cluster.simulation.scheduler.podinfo import Key

FIRST_DELAY, LONGEST_DELAY = 1.0, 10.0
"""Back-off of a pod after attempts without success, in seconds."""
FEW = 100
"""Number of waiting pods up to which there is no back-off, as in a kube-scheduler with an empty queue."""
AGAIN = 300.0
"""Seconds after which a pod is tried again if nothing happened."""

AFTER_POD_LEFT = (
    "NodeResourcesFit",
    "NodePorts",
    "InterPodAffinity",
    "PodTopologySpread",
    "VolumeRestrictions",
)
AFTER_POD_CAME = ("InterPodAffinity", "PodTopologySpread")
AFTER_VOLUME = ("VolumeBinding", "VolumeZone")


@dataclass(slots=True)
class _Record:
    plugins: frozenset[str]
    attempts: int
    tried: float


class Waiting:
    """Pods that did not fit, by the plugins that refused them."""

    def __init__(self) -> None:
        self._records: dict[Key, _Record] = {}
        self._by_plugin: dict[str, set[Key]] = {}
        self._attempts: dict[Key, int] = {}

    def __len__(self) -> int:
        return len(self._records)

    def __contains__(self, key: Key) -> bool:
        return key in self._records

    def add(self, key: Key, plugins: Iterable[str], now: float) -> None:
        self._leave(key)
        attempts = self._attempts[key] = self._attempts.get(key, 0) + 1
        record = self._records[key] = _Record(frozenset(plugins), attempts, now)
        for plugin in record.plugins:
            self._by_plugin.setdefault(plugin, set()).add(key)

    def discard(self, key: Key) -> None:
        """Forgets a pod that was scheduled or deleted."""
        self._leave(key)
        self._attempts.pop(key, None)

    def _leave(self, key: Key) -> None:
        record = self._records.pop(key, None)
        for plugin in record.plugins if record is not None else ():
            held = self._by_plugin[plugin]
            held.discard(key)
            if not held:
                del self._by_plugin[plugin]

    def release(self, plugins: Iterable[str] | None, now: float) -> list[tuple[Key, float]]:
        """Pods that a change may help, and the seconds until they are due. None stands for all plugins."""
        if not self._records:
            return []
        if plugins is None:
            keys = list(self._records)
        else:
            found = [self._by_plugin.get(plugin, ()) for plugin in plugins]
            keys = list(dict.fromkeys(itertools.chain(*map(sorted, found))))
        patient = len(self._records) > FEW
        due = []
        for key in keys:
            record = self._records[key]
            delay = min(FIRST_DELAY * 2.0 ** min(record.attempts - 1, 10), LONGEST_DELAY)
            due.append((key, max(record.tried + delay - now, 0.0) if patient else 0.0))
            self._leave(key)
        return due


class PriorityOrder:
    """Ready keys of the queue: the pod of the highest priority first, then the one that came first."""

    def __init__(self, priority_of: Callable[[Key], int]) -> None:
        self._priority_of = priority_of
        self._heap: list[tuple[int, int, Key]] = []
        self._numbers = itertools.count()

    def __len__(self) -> int:
        return len(self._heap)

    def append(self, key: Key) -> None:
        heapq.heappush(self._heap, (-self._priority_of(key), next(self._numbers), key))

    def popleft(self) -> Key:
        return heapq.heappop(self._heap)[2]
