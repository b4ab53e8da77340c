"""Traffic: counters of the requests of one FlowSchema at its priority level, for the metrics of flow control.

A one-seat request that starts at once and takes less than five milliseconds costs three additions. Metrics that can be
derived from other counters are computed when /metrics is requested (`Traffic.totals`).
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from kubist.base.http.messages import Headers

if TYPE_CHECKING:
    from kubist.api.filters.flowcontrol.priority_level import Level
    from kubist.api.filters.flowcontrol.seats import ExemptSeat

SECONDS: tuple[float, ...] = (0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30)
"""Upper bounds of durations in seconds."""
SEATS = (1, 2, 4, 8, 16, 32, 64, 100)
WATCHES = (0, 1, 10, 100, 1000, 10000)
QUEUE_LENGTHS = (0, 10, 25, 50, 100, 250, 500, 1000)
_SHORT = SECONDS[1]

Samples = list[float]
"""Histogram: the count of each bucket, then the sum."""


def samples(bounds: tuple[float, ...]) -> Samples:
    return [0] * (len(bounds) + 2)


def observe(histogram: Samples, bounds: tuple[float, ...], value: float) -> None:
    histogram[bisect_left(bounds, value)] += 1
    histogram[-1] += value


class Traffic:
    """Requests of a FlowSchema at a priority level."""

    __slots__ = (
        "executing", "executions", "exempt_seat", "headers", "level", "no_accommodation", "queue_lengths", "queued",
        "queued_seats", "rejections", "schema", "seats", "waits", "watch_counts", "watch_executions", "wide_seats",
    )  # fmt: skip

    def __init__(self, schema: str, schema_uid: str, level: Level) -> None:
        self.schema = schema
        self.level = level
        self.headers: Headers = [
            (b"X-Kubernetes-PF-FlowSchema-UID", schema_uid.encode()),
            (b"X-Kubernetes-PF-PriorityLevel-UID", level.uid.encode()),
        ]
        self.exempt_seat: ExemptSeat | None = None
        """Shared seat of the requests if the level is exempt."""
        self.executing = 0
        """Executing requests. A watch counts until its initial events are sent."""
        self.wide_seats = 0
        """Occupied seats beyond one for each executing request."""
        self.queued = 0
        self.queued_seats = 0
        self.executions = samples(SECONDS)
        self.watch_executions = samples(SECONDS)
        self.seats = samples(SEATS)
        """Estimated seats of requests that need more than one."""
        self.watch_counts = samples(WATCHES)
        self.waits = {True: samples(SECONDS), False: samples(SECONDS)}
        """Waits in a queue, by whether the request was then executed."""
        self.queue_lengths = samples(QUEUE_LENGTHS)
        self.rejections: dict[str, int] = {}
        self.no_accommodation = 0

    def finish(self, seconds: float) -> None:
        """Counts the end of an execution."""
        self.executing -= 1
        executions = self.executions
        executions[1 if seconds <= _SHORT else bisect_left(SECONDS, seconds)] += 1
        executions[-1] += seconds

    def reject(self, reason: str) -> None:
        self.rejections[reason] = self.rejections.get(reason, 0) + 1

    def totals(self) -> dict[str, list[float]]:
        """All counters by metric and label values, in a form that can be added to the counters of other processes."""
        finished = sum(self.executions[:-1]) + sum(self.watch_executions[:-1])
        dispatched = finished + self.executing
        arrived = dispatched + self.queued + sum(self.rejections.values())
        seats, waits, lengths = self.seats.copy(), self.waits[True].copy(), self.queue_lengths.copy()
        single = arrived - sum(self.seats[:-1])
        seats[0] += single
        seats[-1] += single
        if self.level.queue_count:
            # kube-apiserver puts every request of such a level into a queue, if only for a moment.
            at_once = dispatched - sum(waits[:-1])
            waits[1] += at_once
            lengths[1] += at_once
            lengths[-1] += at_once
        totals: dict[str, list[float]] = {
            "dispatched_requests_total": [dispatched],
            "current_executing_requests": [self.executing],
            "current_executing_seats": [self.executing + self.wide_seats],
            "work_estimated_seats": seats,
            "request_execution_seconds regular": self.executions,
            "request_execution_seconds watch": self.watch_executions,
            "watch_count_samples": self.watch_counts,
            "request_wait_duration_seconds true": waits,
            "request_wait_duration_seconds false": self.waits[False],
            "request_queue_length_after_enqueue": lengths,
            "request_dispatch_no_accommodation_total": [self.no_accommodation],
        }
        if self.level.queue_count:
            totals["current_inqueue_requests"] = [self.queued]
            totals["current_inqueue_seats"] = [self.queued_seats]
        for reason, count in self.rejections.items():
            totals[f"rejected_requests_total {reason}"] = [count]
        return {name: values for name, values in totals.items() if len(values) == 1 or any(values)}
