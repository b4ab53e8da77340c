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


SIZES = (1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000)
"""Upper bounds in bytes."""


class Histogram:
    """Histogram of the durations of requests, and of the sizes of their responses."""

    __slots__ = ("buckets", "bytes", "count", "sizes", "sum")

    def __init__(self) -> None:
        self.buckets = [0] * (len(BUCKETS) + 1)
        self.count = 0
        self.sum = 0.0
        self.sizes = [0] * (len(SIZES) + 1)
        self.bytes = 0

    def measure(self, size: int) -> None:
        """Counts a response of a size in bytes."""
        self.sizes[bisect.bisect_left(SIZES, size)] += 1
        self.bytes += size

    def observe(self, seconds: float) -> None:
        self.buckets[bisect.bisect_left(BUCKETS, seconds)] += 1
        self.count += 1
        self.sum += seconds

    def add(self, buckets: list[int], count: int, total: float, sizes: list[int], size: int) -> None:
        self.buckets = [mine + theirs for mine, theirs in zip(self.buckets, buckets, strict=True)]
        self.count += count
        self.sum += total
        self.sizes = [mine + theirs for mine, theirs in zip(self.sizes, sizes, strict=True)]
        self.bytes += size


class Counters:
    """Requests, their durations, open watches and requests in flight (reading, changing), CPU time in seconds, and
    memory in bytes."""

    def __init__(self) -> None:
        self.requests: dict[Where, int] = {}
        self.durations: dict[Where, Histogram] = {}
        self.watches: dict[Where, int] = {}
        self.inflight = [0, 0]
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
            where: (found.buckets, found.count, found.sum, found.sizes, found.bytes)
            for where, found in self.durations.items()
        }
        return marshal.dumps((self.requests, durations, self.watches, self.inflight, self.cpu, self.memory))

    def add(self, dumped: bytes) -> None:
        """Adds the dumped counters of another process."""
        requests, durations, watches, inflight, cpu, memory = marshal.loads(dumped)
        for where, count in requests.items():
            self.requests[where] = self.requests.get(where, 0) + count
        for where, found in durations.items():
            self.durations.setdefault(where, Histogram()).add(*found)
        for where, count in watches.items():
            self.watches[where] = self.watches.get(where, 0) + count
        self.inflight = [mine + theirs for mine, theirs in zip(self.inflight, inflight, strict=True)]
        self.cpu += cpu
        self.memory += memory


def _resident(peak: int) -> int:
    """Resident memory in bytes: the present value from /proc, or the peak where /proc is missing."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return peak * (1 if sys.platform == "darwin" else 1024)
