"""Metrics of one process, in a form that can be added to the metrics of other processes of the same server."""

from __future__ import annotations

import marshal
import resource
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

BUCKETS: tuple[float, ...] = (
    *(0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5),
    *(2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0),
)
"""Upper bounds in seconds."""
SIZES = (1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000)
"""Upper bounds in bytes."""
READS = frozenset(("GET", "LIST"))
DRY_RUN = 1000
"""Added to the status code of a dry run in `Requests.codes`."""

T = TypeVar("T", int, float)
Where = tuple[str, ...]
"""Labels of requests: verb, group, version, resource, subresource, scope."""


class Requests:
    """Requests with the same labels: counts by status code, and histograms of durations and response sizes."""

    __slots__ = ("buckets", "bytes", "codes", "reads", "sizes", "sum")

    def __init__(self, verb: str) -> None:
        self.codes: dict[int, int] = {}
        self.buckets = [0] * (len(BUCKETS) + 1)
        self.sum = 0.0
        self.reads = verb in READS
        """Whether response sizes are counted."""
        self.sizes = [0] * (len(SIZES) + 1)
        self.bytes = 0

    def add(
        self, codes: dict[int, int], buckets: list[int], total: float, sizes: list[int], size: int
    ) -> None:
        for code, count in codes.items():
            self.codes[code] = self.codes.get(code, 0) + count
        self.buckets = [mine + theirs for mine, theirs in zip(self.buckets, buckets, strict=True)]
        self.sum += total
        self.sizes = [mine + theirs for mine, theirs in zip(self.sizes, sizes, strict=True)]
        self.bytes += size


class Counters:
    """Requests, open watches and requests in flight (reading, changing), CPU time in seconds, and memory in bytes."""

    def __init__(self) -> None:
        self.requests: dict[Where, Requests] = {}
        self.watches: dict[Where, int] = {}
        self.inflight = [0, 0]
        self.admission: dict[tuple[str, str, bool], list[float]] = {}
        """Durations of admission phases (`Admission.durations`)."""
        self.flows: dict[tuple[str, str], dict[str, list[float]]] = {}
        """Counters of flow control by FlowSchema and priority level (`Traffic.totals`)."""
        self.levels: dict[str, tuple[int, ...]] = {}
        """Seats of each priority level (`FlowControl.limits`)."""
        self.cpu = 0.0
        self.memory = 0

    def reset(self) -> None:
        """Sets all request counters to zero."""
        self.requests.clear()
        self.admission.clear()

    def measure(self) -> None:
        """Records the CPU time and memory of this process."""
        usage = resource.getrusage(resource.RUSAGE_SELF)
        self.cpu = usage.ru_utime + usage.ru_stime
        self.memory = _resident(usage.ru_maxrss)

    def dump(self) -> bytes:
        requests = {
            where: (stats.codes, stats.buckets, stats.sum, stats.sizes, stats.bytes)
            for where, stats in self.requests.items()
        }
        flows = (self.flows, self.levels)
        return marshal.dumps(
            (requests, self.watches, self.inflight, self.admission, flows, self.cpu, self.memory)
        )

    def add(self, dumped: bytes) -> None:
        """Adds the dumped counters of another process."""
        requests, watches, inflight, admission, (flows, levels), cpu, memory = marshal.loads(dumped)
        for where, stats in requests.items():
            self.requests.setdefault(where, Requests(where[0])).add(*stats)
        for where, count in watches.items():
            self.watches[where] = self.watches.get(where, 0) + count
        self.inflight = [mine + theirs for mine, theirs in zip(self.inflight, inflight, strict=True)]
        for key, theirs in admission.items():
            mine = self.admission.get(key, [0] * len(theirs))
            self.admission[key] = [one + other for one, other in zip(mine, theirs, strict=True)]
        for where, totals in flows.items():
            known = self.flows.setdefault(where, {})
            for name, values in totals.items():
                known[name] = _sum(known.get(name), values)
        self.levels = {level: tuple(_sum(self.levels.get(level), seats)) for level, seats in levels.items()}
        self.cpu += cpu
        self.memory += memory


def _sum(mine: Sequence[T] | None, theirs: Sequence[T]) -> list[T]:
    return list(theirs) if mine is None else [one + other for one, other in zip(mine, theirs, strict=True)]


def _resident(peak: int) -> int:
    """Resident memory in bytes: the current value from /proc, or the peak where /proc is missing."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return peak * (1 if sys.platform == "darwin" else 1024)
