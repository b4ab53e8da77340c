"""/metrics in Prometheus' text format, under kube-apiserver's names.

Counting a request costs two dictionary look-ups. All other metrics are computed when /metrics is requested.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from kubist.api.discovery.counters import BUCKETS, DRY_RUN, SIZES, Counters, Requests, Where
from kubist.base.http.messages import Request, Response
from kubist.model.codec import negotiate

if TYPE_CHECKING:
    from kubist.api.filters.flowcontrol.flowcontrol import FlowControl
    from kubist.api.object_store.registry import Registry
    from kubist.api.request import RequestInfo

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8; escaping="
ESCAPING = ("underscores", "allow-utf-8", "dots", "values")
"""Escaping schemes for metric names with unusual characters. Kubist's names have none."""
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
SMALL = SIZES[0]
_OTHER = "other"
"""Verb label of all other methods, as in kube-apiserver, because clients can make up methods."""
_LABEL_SETS = 20_000
"""Maximum number of distinct label sets. Deleted CRDs leave behind sets that are never used again."""


class Metrics:
    """Metrics of one server."""

    def __init__(
        self,
        registry: Registry,
        watchers: dict[str, set[Any]],
        admission: dict[tuple[str, str, bool], list[float]] | None = None,
    ) -> None:
        self._registry = registry
        self._watchers = watchers
        self._counters = Counters()
        if admission is not None:
            self._counters.admission = admission
        self._requests = self._counters.requests
        self.inflight = self._counters.inflight
        """Numbers of reading and of mutating requests in flight."""
        self.started = time.time()
        self.flow_control: FlowControl | None = None
        """Flow control of this server; None if it has no priority levels."""
        self.others: Callable[[], Awaitable[list[bytes]]] | None = None
        """Returns the counters of the other processes of this server."""

    def count(
        self,
        info: RequestInfo | None,
        code: int,
        seconds: float,
        dry_run: bool,
        *,
        applied: bool = False,
        body: bytes | list[bytes] | None = None,
    ) -> None:
        """Counts an answered request, or a stream that started. `applied`: the request is a server-side apply. `body`:
        response body, whose size is counted for reads."""
        where = _UNREAD if info is None else info.counted_as
        if applied and where[0] == "PATCH":
            where = ("APPLY", *where[1:])
        stats = self._requests.get(where)
        if stats is None:
            where = self._bounded(where, info)
            stats = self._requests.setdefault(where, Requests(where[0]))
        stats.buckets[bisect_left(BUCKETS, seconds)] += 1
        stats.sum += seconds
        if dry_run:
            code += DRY_RUN
        codes = stats.codes
        codes[code] = codes[code] + 1 if code in codes else 1
        if stats.reads and body is not None:
            size = len(body) if body.__class__ is bytes else sum(map(len, body))  # type: ignore[arg-type]
            stats.sizes[0 if size <= SMALL else bisect_left(SIZES, size)] += 1
            stats.bytes += size

    def _bounded(self, where: tuple[str, ...], info: RequestInfo | None) -> tuple[str, ...]:
        """Labels of a request, without values that a client can choose freely."""
        if info is None:
            return where
        verb = "GET" if where[0] == "HEAD" else where[0] if where[0] in _VERBS else _OTHER
        if not self._served(info) or len(self._requests) >= _LABEL_SETS:
            return verb, "", "", "", "", where[5]
        return verb, *where[1:]

    def _served(self, info: RequestInfo) -> bool:
        """Whether the resource exists. Unknown resources share one label set, because clients can make up names."""
        if not info.is_resource:
            return True
        resource = (self._registry.resources.of(info.group, info.version) or {}).get(info.resource)
        return resource is not None and (not info.subresource or info.subresource in resource.subresources)

    def own(self) -> Counters:
        """Counters of this process with current values."""
        counters = self._counters
        watches: dict[Where, int] = {}
        for watcher in (each for open_ in self._watchers.values() for each in open_):
            where = watcher.ctx.info.counted_as
            watches[where] = watches.get(where, 0) + 1
        counters.watches = watches
        if self.flow_control is not None:
            counters.flows = self.flow_control.totals()
            counters.levels = self.flow_control.limits()
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
        return _page(accept, self._lines(counters), self.started)

    def _lines(self, counters: Counters) -> Iterator[str]:
        # Saves start-up time: loaded with the first request for metrics.
        from kubist.api.discovery.metric_families import families, flowcontrol

        disabled = self._registry.config.disabled_metrics
        for family in (*families(self._registry, counters, self.started), *flowcontrol(counters)):
            if family.name not in disabled:
                yield from family.lines()


def metrics_page(request: Request, lines: Iterable[str], started: float) -> Response:
    """Response with metrics in the format that the client accepts."""
    return _page(request.headers.get("accept", ""), lines, started)


def _page(accept: str, lines: Iterable[str], started: float) -> Response:
    headers = [
        (b"Content-Type", content_type(accept)),
        (b"Process-Start-Time-Unix", str(int(started)).encode()),
    ]
    return Response(200, headers, "".join(f"{line}\n" for line in lines).encode())


def content_type(accept: str) -> bytes:
    """Content type of the text format, with the escaping of the last Accept clause up to the first one for
    text/plain."""
    escaping = ESCAPING[0]
    for clause in negotiate.parse_accept(accept):
        parameters = dict(clause.parameters)
        value = parameters.get("escaping", "")
        if value in ESCAPING:
            escaping = value
        if (clause.type, clause.subtype) == ("text", "plain") and parameters.get(
            "version", "0.0.4"
        ) == "0.0.4":
            break
    return f"{CONTENT_TYPE}{escaping}".encode()
