"""/metrics in Prometheus' text format, under the reference's names.

Counting a request costs two dictionary look-ups. All other metrics are computed when /metrics is requested.
"""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from kubist.codec import negotiate
from kubist.discovery.counters import BUCKETS, Counters, Histogram
from kubist.http.messages import Request, Response

if TYPE_CHECKING:
    from kubist.objectstore.registry import Registry
    from kubist.request import RequestInfo
    from kubist.storage.encryption.tally import Tally

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8; escaping="
ESCAPING = ("underscores", "allow-utf-8", "dots", "values")
"""Escaping schemes for metric names with unusual characters. Kubist's names have none."""
Labels = tuple[tuple[str, str], ...]
_UNREAD = ("", "", "", "", "", "")
"""Labels of a request with an unreadable request line."""
_VERBS = frozenset(
    (
        *(
            "APPLY",
            "CONNECT",
            "CREATE",
            "DELETE",
            "DELETECOLLECTION",
            "GET",
            "LIST",
            "PATCH",
            "POST",
            "PROXY",
            "PUT",
        ),
        *("UPDATE", "WATCH"),
    )
)
_OTHER = "other"
"""Verb label of all other methods, as in the reference, because clients can make up methods."""
_LABEL_SETS = 20_000
"""Maximum number of distinct label sets. Deleted CRDs leave sets that are never used again."""


class Metrics:
    """Metrics of one server."""

    def __init__(self, registry: Registry, watchers: dict[str, set[Any]]) -> None:
        self._registry = registry
        self._watchers = watchers
        self._counters = Counters()
        self._requests, self._durations = self._counters.requests, self._counters.durations
        self.started = time.time()
        self.others: Callable[[], Awaitable[list[bytes]]] | None = None
        """Returns the counters of the other processes of this server."""

    def count(
        self, info: RequestInfo | None, code: int, seconds: float, dry_run: bool, *, applied: bool = False
    ) -> None:
        """Counts a request that was answered (a stream: started). `applied`: its body is of server-side apply."""
        where = _UNREAD if info is None else info.counted_as
        if applied and where[0] == "PATCH":
            where = ("APPLY", *where[1:])
        histogram = self._durations.get(where)
        if histogram is None:
            where = self._bounded(where, info)
            histogram = self._durations.setdefault(where, Histogram())
        histogram.observe(seconds)
        key = (*where, str(code), "All" if dry_run else "")
        self._requests[key] = self._requests.get(key, 0) + 1

    def _bounded(self, where: tuple[str, ...], info: RequestInfo | None) -> tuple[str, ...]:
        """Labels of a request, without values that a client can choose freely."""
        if info is None:
            return where
        verb = "GET" if where[0] == "HEAD" else where[0] if where[0] in _VERBS else _OTHER
        if not self._served(info) or len(self._durations) >= _LABEL_SETS:
            return verb, "", "", "", "", where[5]
        return verb, *where[1:]

    def _served(self, info: RequestInfo) -> bool:
        """Whether the resource exists. Unknown resources share one label set, because clients can make up names."""
        if not info.is_resource:
            return True
        found = (self._registry.resources.of(info.group, info.version) or {}).get(info.resource)
        return found is not None and (not info.subresource or info.subresource in found.subresources)

    def own(self) -> Counters:
        """Counters of this process with present values."""
        counters = self._counters
        counters.watches = {prefix: len(watchers) for prefix, watchers in self._watchers.items()}
        counters.measure()
        return counters

    async def respond(self, request: Request) -> Response:
        """Response of /metrics. DELETE sets the counters of this process to zero."""
        if request.method == "DELETE":
            self._counters.reset()
            return Response(200, [(b"Content-Type", b"text/plain; charset=utf-8")], b"metrics reset\n")
        return await self.answer(request.headers.get("accept", ""))

    async def answer(self, accept: str = "") -> Response:
        counters = self.own()
        if self.others is not None:
            total = Counters()
            for part in (counters.dump(), *await self.others()):
                total.add(part)
            counters = total
        lines = [line for family in self._families(counters) for line in family]
        return _page(accept, lines, self.started)

    def _families(self, counters: Counters) -> Iterator[Iterable[str]]:
        yield self._request_total(counters)
        yield self._request_duration(counters)
        yield self._collections()
        yield self._long_running(counters)
        if self._registry.encrypted is not None:
            yield self._encryption(self._registry.encrypted.values.tally)
        yield self._process(counters)

    def _request_total(self, counters: Counters) -> Iterator[str]:
        yield "# TYPE apiserver_request_total counter"
        for (*where, code, dry_run), count in sorted(counters.requests.items()):
            labels = (("code", code), *_request_labels(dry_run, *where))
            yield _sample("apiserver_request_total", labels, count)

    def _request_duration(self, counters: Counters) -> Iterator[str]:
        name = "apiserver_request_duration_seconds"
        yield f"# TYPE {name} histogram"
        for where, found in sorted(counters.durations.items()):
            labels = _request_labels("", *where)
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

    def _long_running(self, counters: Counters) -> Iterator[str]:
        yield "# TYPE apiserver_longrunning_requests gauge"
        prefixes = {kind.prefix: kind for kind in self._registry.resources}
        for prefix, watches in counters.watches.items():
            kind = prefixes.get(prefix)
            if kind is not None:
                labels = (
                    ("component", "apiserver"),
                    ("group", kind.group),
                    ("resource", kind.resource),
                    ("verb", "WATCH"),
                    ("version", kind.version),
                )
                yield _sample("apiserver_longrunning_requests", labels, watches)

    def _encryption(self, tally: Tally) -> Iterator[str]:
        family = ""
        for name, kind, labels, value in tally.samples():
            base = re.sub("_(bucket|sum|count)$", "", name) if kind == "histogram" else name
            if base != family:
                family = base
                yield f"# TYPE {base} {kind}"
            yield _sample(name, labels, value)

    def _process(self, counters: Counters) -> Iterator[str]:
        yield "# TYPE process_cpu_seconds_total counter"
        yield _sample("process_cpu_seconds_total", (), counters.cpu)
        yield "# TYPE process_start_time_seconds gauge"
        yield _sample("process_start_time_seconds", (), self.started)
        yield "# TYPE process_resident_memory_bytes gauge"
        yield _sample("process_resident_memory_bytes", (), counters.memory)


def _request_labels(
    dry_run: str, verb: str, group: str, version: str, plural: str, subresource: str, scope: str
) -> tuple[tuple[str, str], ...]:
    return (
        ("component", "apiserver"),
        ("dry_run", dry_run),
        ("group", group),
        ("resource", plural),
        ("scope", scope),
        ("subresource", subresource),
        ("verb", verb),
        ("version", version),
    )


def metrics_page(request: Request, lines: Iterable[str], started: float) -> Response:
    """Response with metrics in the format that the client accepts."""
    return _page(request.headers.get("accept", ""), lines, started)


def _page(accept: str, lines: Iterable[str], started: float) -> Response:
    headers = [
        (b"Content-Type", content_type(accept)),
        (b"Process-Start-Time-Unix", str(int(started)).encode()),
    ]
    return Response(200, headers, "".join(f"{line}\n" for line in lines).encode())


def _sample(name: str, labels: Labels, value: float) -> str:
    shown = f"{value:.15g}" if isinstance(value, float) and value != int(value) else str(int(value))
    if not labels:
        return f"{name} {shown}"
    pairs = ",".join([f'{key}="{_escaped(text)}"' for key, text in labels])
    return f"{name}{{{pairs}}} {shown}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def content_type(accept: str) -> bytes:
    """Content type of the text format, with the escaping of the last Accept clause up to the first one for
    text/plain."""
    escaping = ESCAPING[0]
    for clause in negotiate.parse_accept(accept):
        parameters = dict(clause.parameters)
        asked = parameters.get("escaping", "")
        if asked in ESCAPING:
            escaping = asked
        if (clause.type, clause.subtype) == ("text", "plain") and parameters.get(
            "version", "0.0.4"
        ) == "0.0.4":
            break
    return f"{CONTENT_TYPE}{escaping}".encode()
