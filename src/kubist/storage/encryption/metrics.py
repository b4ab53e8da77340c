"""Metrics of encryption: operations and durations by resource, direction and key prefix."""

from __future__ import annotations

import bisect
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

BUCKETS = tuple(5e-6 * 2**power for power in range(25))

Operation = tuple[str, str, str, str]
"""Resource, direction (`to_storage`, `from_storage`), prefix of the stored value, status."""


@dataclass(slots=True)
class Duration:
    """Histogram of durations in one direction under one prefix."""

    buckets: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    sum: float = 0.0


class Metrics:
    """Encryption counters of one server."""

    def __init__(self) -> None:
        self.operations: dict[Operation, int] = {}
        self.durations: dict[tuple[str, str], Duration] = {}
        self.reloads: dict[str, tuple[int, float]] = {}
        """Number and Unix time of the last reload of the configuration, by outcome."""
        self.config_hash = ""

    def add(self, resource: str, direction: str, prefix: str, began: float, ok: bool) -> None:
        operation = resource, direction, prefix, "OK" if ok else "unknown-non-grpc"
        self.operations[operation] = self.operations.get(operation, 0) + 1
        if ok:
            seconds = time.perf_counter() - began
            duration = self.durations.get((direction, prefix))
            if duration is None:
                duration = self.durations[direction, prefix] = Duration()
            duration.buckets[bisect.bisect_left(BUCKETS, seconds)] += 1
            duration.sum += seconds

    def reloaded(self, outcome: str) -> None:
        count, _ = self.reloads.get(outcome, (0, 0.0))
        self.reloads[outcome] = count + 1, time.time()

    def samples(self) -> Iterator[tuple[str, str, tuple[tuple[str, str], ...], float]]:
        """Name, type, labels and value of each sample. Samples of one name are adjacent."""
        name = "apiserver_storage_transformation_operations_total"
        for (resource, direction, prefix, status), count in sorted(self.operations.items()):
            labels = (
                ("resource", resource),
                ("status", status),
                ("transformation_type", direction),
                ("transformer_prefix", prefix),
            )
            yield name, "counter", labels, count
        name = "apiserver_storage_transformation_duration_seconds"
        for (direction, prefix), duration in sorted(self.durations.items()):
            of = (("transformation_type", direction), ("transformer_prefix", prefix))
            reached = 0
            for bound, count in zip((*BUCKETS, None), duration.buckets, strict=True):
                reached += count
                limit = "+Inf" if bound is None else f"{bound:g}"
                yield f"{name}_bucket", "histogram", (*of, ("le", limit)), reached
            yield f"{name}_sum", "histogram", of, duration.sum
            yield f"{name}_count", "histogram", of, reached
        name = "apiserver_encryption_config_controller_automatic_reload"
        for outcome, (count, _) in sorted(self.reloads.items()):
            yield f"{name}s_total", "counter", (("status", outcome),), count
        for outcome, (_, last) in sorted(self.reloads.items()):
            yield f"{name}_last_timestamp_seconds", "gauge", (("status", outcome),), int(last)
        if self.config_hash:
            name = "apiserver_encryption_config_controller_last_config_info"
            yield name, "gauge", (("hash", self.config_hash),), 1
