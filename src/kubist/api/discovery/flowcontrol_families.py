"""Metric families of API Priority and Fairness."""

from __future__ import annotations

from collections.abc import Iterator

from kubist.api.discovery.counters import Counters
from kubist.api.discovery.metric_families import Family, Labels, histogram
from kubist.api.filters.flowcontrol.traffic import QUEUE_LENGTHS, SEATS, SECONDS, WATCHES

_COUNTED: dict[str, tuple[str, str]] = {
    "rejected_requests_total": ("counter", "[BETA] Number of requests that were rejected."),
    "dispatched_requests_total": ("counter", "[BETA] Number of requests that were executed."),
    "current_inqueue_requests": ("gauge", "[BETA] Number of requests that wait in queues."),
    "current_inqueue_seats": ("gauge", "[ALPHA] Number of seats for which requests wait in queues."),
    "current_executing_seats": ("gauge", "[BETA] Number of occupied seats; watches only while they begin."),
    "current_executing_requests": (
        "gauge",
        "[BETA] Number of requests that are executed; watches only while they begin.",
    ),
    "request_dispatch_no_accommodation_total": (
        "counter",
        "[ALPHA] Number of times that a request could not start because of too few free seats.",
    ),
}
_OBSERVED: dict[str, tuple[str, tuple[float, ...]]] = {
    "request_queue_length_after_enqueue": (
        "[ALPHA] Length of the queue after a request joined it.",
        QUEUE_LENGTHS,
    ),
    "request_wait_duration_seconds": ("[BETA] Time that a request waited in its queue, in seconds.", SECONDS),
    "request_execution_seconds": (
        "[ALPHA] Duration of the execution of a request; of a watch, until it has begun. In seconds.",
        SECONDS,
    ),
    "watch_count_samples": ("[ALPHA] Number of watches that get the event of a write.", WATCHES),
    "work_estimated_seats": (
        "[ALPHA] Estimated number of seats of a request: the larger one of initial and final seats.",
        SEATS,
    ),
}
_LIMITS = {
    "nominal_limit_seats": "[BETA] Nominal number of seats of a priority level.",
    "lower_limit_seats": "[ALPHA] Seats of a priority level that it does not lend.",
    "upper_limit_seats": "[ALPHA] Seats that a priority level may occupy, with all that it may borrow.",
    "current_limit_seats": "[ALPHA] Seats that a priority level may occupy now.",
}
_LABELS = {
    "rejected_requests_total": "reason",
    "request_wait_duration_seconds": "execute",
    "request_execution_seconds": "type",
}
"""Labels besides flow_schema and priority_level."""


def flowcontrol(counters: Counters) -> Iterator[Family]:
    """All families in a fixed order."""
    found: dict[str, list[tuple[Labels, list[float]]]] = {}
    for (schema, level), totals in sorted(counters.flows.items()):
        for key, values in sorted(totals.items()):
            name, _, value = key.partition(" ")
            labels: Labels = (("flow_schema", schema), ("priority_level", level))
            if name in _LABELS:
                # Labels are in alphabetical order.
                labels = tuple(sorted((*labels, (_LABELS[name], value))))
            found.setdefault(name, []).append((labels, values))
    for name, (kind, help_) in _COUNTED.items():
        samples = [("", labels, values[0]) for labels, values in found.get(name, ())]
        yield Family(f"apiserver_flowcontrol_{name}", kind, help_, samples)
    for name, (help_, bounds) in _OBSERVED.items():
        observed = [
            each
            for labels, (*buckets, total) in found.get(name, ())
            for each in histogram(labels, bounds, buckets, total)
        ]
        yield Family(f"apiserver_flowcontrol_{name}", "histogram", help_, observed)
    for index, (name, help_) in enumerate(_LIMITS.items()):
        samples = [
            ("", (("priority_level", level),), seats[index])
            for level, seats in sorted(counters.levels.items())
        ]
        if samples:
            yield Family(f"apiserver_flowcontrol_{name}", "gauge", help_, samples)
