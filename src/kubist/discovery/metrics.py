"""/metrics: what the server has done and what it holds, in Prometheus' text form, under the reference's names.

Counting a request costs two dictionary look-ups; everything else is computed when somebody asks.
"""

from __future__ import annotations

import bisect
import resource
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kubist.http.messages import Response

if TYPE_CHECKING:
    from kubist.registry import Registry
    from kubist.request import RequestInfo

BUCKETS = (
    0.005,
    0.025,
    0.05,
    0.1,
    0.2,
    0.4,
    0.6,
    0.8,
    1.0,
    1.25,
    1.5,
    2,
    3,
    4,
    5,
    6,
    8,
    10,
    15,
    20,
    30,
    45,
    60,
)
CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
Labels = tuple[tuple[str, str], ...]


class Histogram:
    """How long the requests of one kind took."""

    __slots__ = ("buckets", "count", "sum")

    def __init__(self) -> None:
        self.buckets = [0] * (len(BUCKETS) + 1)
        self.count = 0
        self.sum = 0.0

    def observe(self, seconds: float) -> None:
        self.buckets[bisect.bisect_left(BUCKETS, seconds)] += 1
        self.count += 1
        self.sum += seconds


class Metrics:
    """The counters of one server."""

    def __init__(self, registry: Registry, watchers: dict[str, set[Any]]) -> None:
        self._registry = registry
        self._watchers = watchers
        self._requests: dict[tuple[str, ...], int] = {}
        self._durations: dict[tuple[str, ...], Histogram] = {}
        self._started = time.time()

    def count(self, info: RequestInfo | None, code: int, seconds: float, dry_run: bool) -> None:
        """A request has been answered (a stream: begun)."""
        if info is None:
            where: tuple[str, ...] = ("", "", "", "", "", "")
        else:
            scope = "" if not info.is_resource else "resource" if info.name else _scope(info)
            where = (info.verb.upper(), info.group, info.version, info.resource, info.subresource, scope)
        key = (*where, str(code), "All" if dry_run else "")
        self._requests[key] = self._requests.get(key, 0) + 1
        histogram = self._durations.get(where)
        if histogram is None:
            histogram = self._durations[where] = Histogram()
        histogram.observe(seconds)

    def answer(self) -> Response:
        lines = [line for family in self._families() for line in family]
        return Response(200, [(b"Content-Type", CONTENT_TYPE)], ("\n".join(lines) + "\n").encode())

    def _families(self) -> Iterator[Iterable[str]]:
        yield self._request_total()
        yield self._request_duration()
        yield self._collections()
        yield self._long_running()
        yield self._process()

    def _request_total(self) -> Iterator[str]:
        yield "# TYPE apiserver_request_total counter"
        for (verb, group, version, plural, sub, scope, code, dry_run), count in sorted(
            self._requests.items()
        ):
            labels = (
                ("code", code),
                ("component", "apiserver"),
                ("dry_run", dry_run),
                ("group", group),
                ("resource", plural),
                ("scope", scope),
                ("subresource", sub),
                ("verb", verb),
                ("version", version),
            )
            yield _sample("apiserver_request_total", labels, count)

    def _request_duration(self) -> Iterator[str]:
        name = "apiserver_request_duration_seconds"
        yield f"# TYPE {name} histogram"
        for (verb, group, version, plural, sub, scope), found in sorted(self._durations.items()):
            labels = (
                ("component", "apiserver"),
                ("dry_run", ""),
                ("group", group),
                ("resource", plural),
                ("scope", scope),
                ("subresource", sub),
                ("verb", verb),
                ("version", version),
            )
            reached = 0
            for bound, count in zip((*BUCKETS, None), found.buckets, strict=True):
                reached += count
                limit = "+Inf" if bound is None else f"{bound:g}"
                yield _sample(f"{name}_bucket", (*labels, ("le", limit)), reached)
            yield _sample(f"{name}_sum", labels, found.sum)
            yield _sample(f"{name}_count", labels, found.count)

    def _collections(self) -> Iterator[str]:
        cache = self._registry.cache
        found = [
            ((("group", kind.group), ("resource", kind.resource)), cache.collections[kind.prefix])
            for kind in self._registry.resources
            if kind.prefix in cache.collections and kind.api_version == kind.storage_version
        ]
        yield "# TYPE apiserver_resource_objects gauge"
        yield from (_sample("apiserver_resource_objects", labels, len(c.entries)) for labels, c in found)
        yield "# TYPE apiserver_watch_cache_resource_version gauge"
        for labels, _ in found:
            yield _sample("apiserver_watch_cache_resource_version", labels, cache.revision)

    def _long_running(self) -> Iterator[str]:
        yield "# TYPE apiserver_longrunning_requests gauge"
        prefixes = {kind.prefix: kind for kind in self._registry.resources}
        for prefix, watchers in self._watchers.items():
            kind = prefixes.get(prefix)
            if kind is not None:
                labels = (
                    ("component", "apiserver"),
                    ("group", kind.group),
                    ("resource", kind.resource),
                    ("verb", "WATCH"),
                    ("version", kind.version),
                )
                yield _sample("apiserver_longrunning_requests", labels, len(watchers))

    def _process(self) -> Iterator[str]:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        yield "# TYPE process_cpu_seconds_total counter"
        yield _sample("process_cpu_seconds_total", (), usage.ru_utime + usage.ru_stime)
        yield "# TYPE process_start_time_seconds gauge"
        yield _sample("process_start_time_seconds", (), self._started)
        yield "# TYPE process_resident_memory_bytes gauge"
        yield _sample("process_resident_memory_bytes", (), _resident(usage.ru_maxrss))


def _scope(info: RequestInfo) -> str:
    return "namespace" if info.namespace else "cluster"


def _resident(peak: int) -> int:
    """Memory in use: now where the system tells, else at most so far."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return peak * (1 if sys.platform == "darwin" else 1024)


def _sample(name: str, labels: Labels, value: float) -> str:
    shown = f"{value:g}" if isinstance(value, float) and value != int(value) else str(int(value))
    if not labels:
        return f"{name} {shown}"
    pairs = ",".join([f'{key}="{_escaped(text)}"' for key, text in labels])
    return f"{name}{{{pairs}}} {shown}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
