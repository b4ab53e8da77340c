"""Text of docs/reference/limits.md, from the constants of the code. `tools/make_reference.py` writes the page."""

from __future__ import annotations

from kubist.api import request
from kubist.api.crd.rules import cost
from kubist.api.filters import impersonation
from kubist.api.filters.flowcontrol import flowcontrol
from kubist.api.kinds.core import configmap
from kubist.api.object_store.registry import VALUE_LIMIT
from kubist.api.verbs import watch
from kubist.api.webhooks import reviews
from kubist.base.http.client import chunks, pool, responses
from kubist.base.http.limits import Limits
from kubist.base.jsontext.json import MAX_DEPTH
from kubist.cluster.simulation.shell import file_store
from kubist.cluster.simulation.stages import limits as stages
from kubist.model.cel import PER_CALL_LIMIT
from kubist.model.codec import negotiate
from kubist.model.meta import objectmeta
from kubist.server.clusters import life_cycle, limits
from kubist.storage.cache import cache
from kubist.testbench.faults import api as faults_api
from kubist.testbench.faults import injection
from kubist.testbench.recording import capture, recording
from kubist.testbench.snapshots import snapshots
from kubist.testbench.users import users

HEAD = """\
# Limits

```bash
kubectl get --raw '/readyz?verbose'
```

A request past a limit gets the response in the last column. Other requests are not affected. Limits of Kubernetes
have Kubernetes' values; a limit that Kubernetes does not have protects the server.

This page is made from the code by `tools/make_reference.py`.
"""

Row = tuple[str, str, str]


def _size(count: int) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count / unit:g} {name}"
    return f"{count} bytes"


def _objects() -> list[Row]:
    return [
        ("stored object", _size(VALUE_LIMIT), "500, `etcdserver: request is too large`, as with etcd"),
        ("annotations of an object, all together", _size(objectmeta.ANNOTATIONS_LIMIT), "422"),
        ("data of a ConfigMap or Secret", _size(configmap.SIZE_LIMIT), "422"),
        ("name of a field manager", f"{objectmeta.FIELD_MANAGER_LIMIT} characters", "422"),
        ("nesting of a JSON or YAML document", f"{MAX_DEPTH} levels (kube-apiserver: 10,000)", "400"),
        ("estimated cost of one CEL rule of a CRD", f"{cost.RULE_LIMIT:,}", "422 for the CRD"),
        ("estimated cost of all CEL rules of a CRD", f"{cost.SCHEMA_LIMIT:,}", "422 for the CRD"),
        ("actual cost of one evaluation", f"{PER_CALL_LIMIT:,}", "422, or the failurePolicy of the policy"),
    ]


def _connections() -> list[Row]:
    limits = Limits()
    return [
        ("body of a request", _size(limits.body_bytes), "413"),
        ("head of a request", f"{_size(limits.header_bytes)}, {limits.header_count:,} headers", "431"),
        ("path of a request, without its query", _size(limits.path_bytes), "414"),
        (
            "parameters of a query",
            f"{request.PARAMETERS:,}",
            "the query counts as empty, as in kube-apiserver",
        ),
        ("`Accept` header", _size(negotiate.LONGEST), "the rest is not read"),
        ("`Impersonate-*` headers together", _size(impersonation.LONGEST), "400"),
        ("time for a TLS handshake", f"{limits.handshake_timeout:g} s", "the connection is closed"),
        ("time for the head", f"{limits.header_timeout:g} s", "408, or the connection is closed"),
        ("time for the body", f"{limits.body_timeout:g} s", "408, or the connection is closed"),
        ("pause between two requests", f"{limits.idle_timeout:g} s", "the connection is closed"),
        (
            "full send buffer that the client does not read",
            f"{limits.stall_timeout:g} s",
            "the connection is closed",
        ),
        ("pipelined HTTP/1.1 requests", f"{limits.pipelined_requests}", "400, and the connection is closed"),
        (
            "concurrent HTTP/2 requests of a connection",
            f"{limits.streams} (`--http2-max-streams-per-connection`)",
            "the stream is refused",
        ),
        (
            "HTTP/2 bodies of unanswered requests",
            f"{_size(limits.connection_body_bytes)} per connection, without the first 64 KiB of each",
            "further bodies wait",
        ),
        (
            "HTTP/2 frames without a request",
            f"{limits.idle_frames:,} in ten seconds",
            "the connection is closed",
        ),
        ("response of a webhook or extension API server", _size(pool.LIMIT), "the call fails"),
        (
            "strings, lists and objects in the response of a webhook",
            f"{reviews.VALUES_LIMIT:,}",
            "the call fails",
        ),
        (
            "heads of that response",
            f"{_size(responses.HEAD_LIMIT)}, {responses.FIELD_LIMIT:,} headers, "
            f"{responses.INFORMATIONAL_LIMIT} heads with a 1xx status",
            "the call fails",
        ),
        (
            "framing of the chunks of that response",
            f"{_size(responses.FRAMING_LIMIT)} beyond its content, {_size(chunks.LINE_LIMIT)} a line, "
            f"{_size(chunks.TRAILER_LIMIT)} of trailers",
            "the call fails",
        ),
    ]


def _load() -> list[Row]:
    return [
        (
            "requests that execute at once",
            "`--max-requests-inflight` and `--max-mutating-requests-inflight` together, divided among priority levels",
            "the request waits in a queue, then 429 with `Retry-After: 1`",
        ),
        (
            "requests that start in one turn of the event loop",
            f"{flowcontrol.ALL_TURNS}, of one user {flowcontrol.TURNS}",
            "the request waits for the next turn",
        ),
        ("duration of a request that is no watch", "`--request-timeout`, 60 s", "504"),
        (
            "unread events of a watch",
            f"{_size(watch.BUFFER_LIMIT)}; {watch.WAITING_LIMIT:,} events that need a conversion",
            "the watch is closed; clients resume it",
        ),
        (
            "history in memory",
            f"{cache.WINDOW_CHANGES:,} changes or {_size(cache.WINDOW_BYTES)} of each collection",
            "410 for older resource versions; clients list again",
        ),
        ("history in the store", "five minutes", "410"),
    ]


def _bench() -> list[Row]:
    return [
        ("fault rules", f"{injection.MOST_RULES:,}", "409"),
        ("requests that faults delay at once", f"{injection.MOST_HELD:,}", "429"),
        ("body of a fault rule", _size(faults_api.BODY_LIMIT), "413"),
        ("recordings", f"{capture.MOST_RECORDINGS}", "409"),
        (
            "requests of a recording",
            f"{recording.ENTRIES:,}; `maxEntries` raises it up to {recording.MOST_ENTRIES:,}",
            "further ones are dropped; the recording says so",
        ),
        (
            "bytes of a recording",
            f"{_size(recording.BYTES)}; `maxBytes` raises it up to {_size(recording.MOST_BYTES)}",
            "further ones are dropped; the recording says so",
        ),
        ("named snapshots", f"{snapshots.MOST_SNAPSHOTS}, {_size(snapshots.MOST_BYTES)} together", "409"),
        ("users of `/kubist/v1/users`", f"{users.MOST:,}", "400"),
        ("clusters of `kubist serve --clusters`", f"{life_cycle.MOST:,}", "403"),
        (
            "clusters on disk that stay loaded without an authenticated client",
            f"{life_cycle.MOST_WITHOUT_CLIENTS}",
            "the first one loaded is unloaded",
        ),
        (
            "requests of one cluster that start in one turn",
            f"{limits.REQUESTS}",
            "the request waits for the next turn",
        ),
        (
            "expression or template of a KWOK Stage",
            f"{stages.MAX_SOURCE:,} characters, {stages.MAX_STEPS:,} steps, {_size(stages.MAX_SIZE)} of output",
            "an Event; the Stage has no effect",
        ),
        (
            "files that `kubectl cp` copies into simulated containers",
            f"{_size(file_store.CONTAINER_LIMIT)} in one, {_size(file_store.TOTAL_LIMIT)} in all",
            "the copy fails",
        ),
    ]


def page() -> str:
    """docs/reference/limits.md."""
    parts = [HEAD]
    for title, rows in (
        ("Objects", _objects()),
        ("Connections and requests", _connections()),
        ("Load and history", _load()),
        ("Test bench, workloads and clusters", _bench()),
    ):
        parts += [f"## {title}\n", "| part | limit | past it |", "|---|---|---|"]
        parts += [f"| {part} | {limit} | {effect} |" for part, limit, effect in rows]
        parts.append("")
    parts += [
        "A cluster below `/clusters/NAME` can have limits of its own for objects, bytes and requests per second",
        "([clusters](../clusters.md)). With `--workers`, each worker has its share of the requests that execute at",
        "once ([operations](../operations.md#workers)). The number of objects is limited by memory and disk only.",
        "",
    ]
    return "\n".join(parts)
