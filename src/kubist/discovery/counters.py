"""Metrics of one process, in a form that can be added to those of other processes of the same server."""

from __future__ import annotations

import bisect
import marshal
import resource
import sys
from pathlib import Path

BUCKETS = (
    *(0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5),
    *(2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60),
)
"""Upper bounds in seconds."""

Where = tuple[str, ...]


class Histogram:
    """Histogram of request durations."""

    __slots__ = ("buckets", "count", "sum")

    def __init__(self) -> None:
        self.buckets = [0] * (len(BUCKETS) + 1)
        self.count = 0
        self.sum = 0.0

    def observe(self, seconds: float) -> None:
        self.buckets[bisect.bisect_left(BUCKETS, seconds)] += 1
        self.count += 1
        self.sum += seconds

    def add(self, buckets: list[int], count: int, total: float) -> None:
        self.buckets = [mine + theirs for mine, theirs in zip(self.buckets, buckets, strict=True)]
        self.count += count
        self.sum += total


class Counters:
    """Requests, their durations, open watches by collection, CPU time in seconds and memory in bytes."""

    def __init__(self) -> None:
        self.requests: dict[Where, int] = {}
        self.durations: dict[Where, Histogram] = {}
        self.watches: dict[str, int] = {}
        self.cpu = 0.0
        self.memory = 0

    def reset(self) -> None:
        """Sets all request counters to zero."""
        self.requests.clear()
        self.durations.clear()

    def measure(self) -> None:
        """Records the CPU time and memory of this process."""
        usage = resource.getrusage(resource.RUSAGE_SELF)
        self.cpu = usage.ru_utime + usage.ru_stime
        self.memory = _resident(usage.ru_maxrss)

    def dump(self) -> bytes:
        durations = {
            where: (found.buckets, found.count, found.sum) for where, found in self.durations.items()
        }
        return marshal.dumps((self.requests, durations, self.watches, self.cpu, self.memory))

    def add(self, dumped: bytes) -> None:
        """Adds the dumped counters of another process."""
        requests, durations, watches, cpu, memory = marshal.loads(dumped)
        for where, count in requests.items():
            self.requests[where] = self.requests.get(where, 0) + count
        for where, found in durations.items():
            self.durations.setdefault(where, Histogram()).add(*found)
        for prefix, count in watches.items():
            self.watches[prefix] = self.watches.get(prefix, 0) + count
        self.cpu += cpu
        self.memory += memory


def _resident(peak: int) -> int:
    """Resident memory in bytes: the present value from /proc, or the peak where /proc is missing."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return peak * (1 if sys.platform == "darwin" else 1024)
