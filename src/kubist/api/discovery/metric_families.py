"""Metric families of /metrics. All of them are computed when /metrics is requested."""

from __future__ import annotations

import contextlib
import os
import re
import resource
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kubist.api.admission.chain import PHASE_BUCKETS
from kubist.api.discovery.counters import BUCKETS, DRY_RUN, SIZES, Counters, Where
from kubist.api.discovery.paths import VERSION
from kubist.api.filters.flowcontrol.seats import QUEUE_LENGTHS, SEATS, SECONDS, WATCHES
from kubist.model import feature_gates

if TYPE_CHECKING:
    from kubist.api.object_store.registry import Registry


Labels = tuple[tuple[str, str], ...]
_BUILD = {
    "build_date": "buildDate",
    "compiler": "compiler",
    "git_commit": "gitCommit",
    "git_tree_state": "gitTreeState",
    "git_version": "gitVersion",
    "go_version": "goVersion",
    "major": "major",
    "minor": "minor",
    "platform": "platform",
}
"""Labels of kubernetes_build_info → fields of /version."""
_REMOVED = re.compile(r"unavailable in v(\d+\.\d+)\+")


class Family(NamedTuple):
    """Metric with all its samples: suffix of the name, labels, value."""

    name: str
    kind: str
    help: str
    samples: Iterable[tuple[str, Labels, float]]

    def lines(self) -> Iterator[str]:
        yield f"# HELP {self.name} {self.help}"
        yield f"# TYPE {self.name} {self.kind}"
        for suffix, labels, value in self.samples:
            yield sample(self.name + suffix, labels, value)


def families(registry: Registry, counters: Counters, started: float) -> Iterator[Family]:
    """All families in a fixed order."""
    yield from _requests(counters)
    yield _admission(counters)
    yield _deprecated(registry, counters)
    yield from _collections(registry)
    yield from _storage_size(registry)
    if registry.encrypted is not None:
        yield from _encryption(registry)
    yield _features(registry)
    labels = tuple((label, VERSION[field]) for label, field in _BUILD.items())
    yield Family("kubernetes_build_info", "gauge", "[BETA] Versions of this server.", [("", labels, 1)])
    yield from _process(counters, started)


def _requests(counters: Counters) -> Iterator[Family]:
    requests = sorted(counters.requests.items(), key=lambda pair: pair[0])
    yield Family(
        "apiserver_request_total",
        "counter",
        "[STABLE] Number of requests.",
        (
            ("", (("code", str(code % DRY_RUN)), *_labels(where, "All" if code >= DRY_RUN else "")), count)
            for where, stats in requests
            for code, count in sorted(stats.codes.items())
        ),
    )
    yield Family(
        "apiserver_request_duration_seconds",
        "histogram",
        "[STABLE] Time from the arrival of a request to its response, in seconds.",
        (
            each
            for where, stats in requests
            for each in histogram(_labels(where, ""), BUCKETS, stats.buckets, stats.sum)
        ),
    )
    yield Family(
        "apiserver_response_sizes",
        "histogram",
        "[STABLE] Size of the responses to reads, in bytes.",
        (
            each
            for where, stats in requests
            if any(stats.sizes)
            for each in histogram(_labels(where), SIZES, stats.sizes, stats.bytes)
        ),
    )
    yield Family(
        "apiserver_current_inflight_requests",
        "gauge",
        "[STABLE] Number of requests that are being answered.",
        (
            ("", (("request_kind", kind),), count)
            for kind, count in zip(("readOnly", "mutating"), counters.inflight, strict=True)
        ),
    )
    yield Family(
        "apiserver_longrunning_requests",
        "gauge",
        "[STABLE] Number of open watches.",
        (("", _labels(where), count) for where, count in sorted(counters.watches.items())),
    )


def _admission(counters: Counters) -> Family:
    return Family(
        "apiserver_admission_step_admission_duration_seconds",
        "histogram",
        "[STABLE] Duration of the phases of admission, in seconds.",
        (
            each
            for (operation, phase, rejected), (*buckets, total) in sorted(counters.admission.items())
            for each in histogram(
                (("operation", operation), ("rejected", str(rejected).lower()), ("type", phase)),
                PHASE_BUCKETS,
                buckets,
                total,
            )
        ),
    )


def _deprecated(registry: Registry, counters: Counters) -> Family:
    """Deprecated resources that were requested."""
    values = {}
    for _, group, version, plural, subresource, *_ in counters.requests:
        kind = registry.resources.get(group, version, plural) if plural else None
        if kind is not None and not kind.custom and kind.strategy.deprecation:
            removed = _REMOVED.search(kind.strategy.deprecation)
            labels = (
                ("group", group),
                ("removed_release", removed[1] if removed else ""),
                ("resource", plural),
                ("subresource", subresource),
                ("version", version),
            )
            values[labels] = 1
    help_ = "[STABLE] Deprecated resources that were requested."
    samples = [("", labels, value) for labels, value in sorted(values.items())]
    return Family("apiserver_requested_deprecated_apis", "gauge", help_, samples)


def _collections(registry: Registry) -> Iterator[Family]:
    cache = registry.cache
    rows = [
        (
            kind,
            (("group", kind.group), ("resource", kind.resource)),
            len(cache.collections[kind.prefix].entries),
        )
        for kind in registry.resources
        if kind.prefix in cache.collections and kind.api_version == kind.storage_version
    ]
    objects = [("", labels, count) for _, labels, count in rows]
    yield Family("apiserver_resource_objects", "gauge", "[ALPHA] Number of stored objects.", objects)
    named = sorted((f"{kind.resource}.{kind.group}".rstrip("."), count) for kind, _, count in rows)
    yield Family(
        "apiserver_storage_objects",
        "gauge",
        "[STABLE] (Deprecated since 1.34.0) Number of stored objects. Use apiserver_resource_objects.",
        [("", (("resource", name),), count) for name, count in named],
    )
    versions = [("", labels, cache.revision) for _, labels, _ in rows]
    help_ = "[ALPHA] Resource version of the cache."
    yield Family("apiserver_watch_cache_resource_version", "gauge", help_, versions)


def _storage_size(registry: Registry) -> Iterator[Family]:
    """Size of the SQLite file. etcd reports its own."""
    directory = registry.config.data_dir
    if not directory or registry.config.etcd_servers:
        return
    size = 0
    for name in ("kubist.db", "kubist.db-wal"):
        with contextlib.suppress(OSError):
            size += (Path(directory) / name).stat().st_size
    help_ = "[STABLE] Size of the database file, in bytes."
    samples = [("", (("storage_cluster_id", "sqlite"),), size)]
    yield Family("apiserver_storage_size_bytes", "gauge", help_, samples)


def _encryption(registry: Registry) -> Iterator[Family]:
    assert registry.encrypted is not None
    by_name: dict[str, Family] = {}
    for name, kind, labels, value in registry.encrypted.values.metrics.samples():
        base = re.sub("_(bucket|sum|count)$", "", name) if kind == "histogram" else name
        family = by_name.setdefault(base, Family(base, kind, "[ALPHA] Encryption at rest.", []))
        assert isinstance(family.samples, list)
        family.samples.append((name[len(base) :], labels, value))
    yield from by_name.values()


def _features(registry: Registry) -> Family:
    values = feature_gates.resolved(registry.config.feature_gates)
    stages = {name: gate.stage.replace("GA", "") for name, gate in feature_gates.known().items()}
    samples = [("", (("name", name), ("stage", stages[name])), int(on)) for name, on in values.items()]
    return Family("kubernetes_feature_enabled", "gauge", "[BETA] Feature gates: 1 if on.", samples)


def _process(counters: Counters, started: float) -> Iterator[Family]:
    used = [("", (), counters.cpu)]
    yield Family("process_cpu_seconds_total", "counter", "CPU time of the process, in seconds.", used)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    yield Family("process_max_fds", "gauge", "Maximum number of open files.", [("", (), most)])
    with contextlib.suppress(OSError):
        count = len(os.listdir("/proc/self/fd"))
        yield Family("process_open_fds", "gauge", "Number of open files.", [("", (), count)])
    memory = [("", (), counters.memory)]
    yield Family("process_resident_memory_bytes", "gauge", "Memory of the process, in bytes.", memory)
    start = [("", (), started)]
    yield Family("process_start_time_seconds", "gauge", "Start of the process, in seconds since 1970.", start)


def histogram(
    labels: Labels, bounds: tuple[float, ...], buckets: Sequence[float], total: float
) -> Iterator[tuple[str, Labels, float]]:
    reached: float = 0
    for bound, count in zip((*bounds, None), buckets, strict=True):
        reached += count
        limit = "+Inf" if bound is None else f"{bound:g}"
        yield "_bucket", (*labels, ("le", limit)), reached
    yield "_sum", labels, total
    yield "_count", labels, reached


def _labels(where: Where, dry_run: str | None = None) -> Labels:
    """Labels of requests. Some metrics have no label dry_run."""
    verb, group, version, plural, subresource, scope = where
    return (
        ("component", "apiserver"),
        *(() if dry_run is None else (("dry_run", dry_run),)),
        ("group", group),
        ("resource", plural),
        ("scope", scope),
        ("subresource", subresource),
        ("verb", verb),
        ("version", version),
    )


def sample(name: str, labels: Labels, value: float) -> str:
    number = f"{value:.15g}" if isinstance(value, float) and value != int(value) else str(int(value))
    if not labels:
        return f"{name} {number}"
    pairs = ",".join([f'{key}="{_escaped(text)}"' for key, text in labels])
    return f"{name}{{{pairs}}} {number}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


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
    series: dict[str, list[tuple[Labels, list[float]]]] = {}
    for (schema, level), totals in sorted(counters.flows.items()):
        for key, values in sorted(totals.items()):
            name, _, value = key.partition(" ")
            labels: Labels = (("flow_schema", schema), ("priority_level", level))
            if name in _LABELS:
                # Labels are in alphabetical order.
                labels = tuple(sorted((*labels, (_LABELS[name], value))))
            series.setdefault(name, []).append((labels, values))
    for name, (kind, help_) in _COUNTED.items():
        samples = [("", labels, values[0]) for labels, values in series.get(name, ())]
        yield Family(f"apiserver_flowcontrol_{name}", kind, help_, samples)
    for name, (help_, bounds) in _OBSERVED.items():
        observed = [
            each
            for labels, (*buckets, total) in series.get(name, ())
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
