"""Report of a failed test: the last requests, Events and changed objects of its cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubist.model.meta.object import Object
from kubist.storage.cache.entry import Change
from kubist.testbench.recording.object_diff import diff_lines
from kubist.testbench.recording.redaction import mark_changed
from kubist.testing.recording import RecordedRequest
from kubist.testing.running_test import Section

if TYPE_CHECKING:
    from kubist.server.server import Server

REQUESTS, EVENTS, OBJECTS = 15, 10, 10
"""Maximum number of rows of each section."""
DIFF_LINES = 6
"""Maximum number of lines of the diff of one object."""
WIDTH = 200
LEFT_OUT = ("Event", "Lease")
"""Kinds left out of the changed objects: Events have their own section, and Leases change all the time."""


def has_requests(server: Server) -> bool:
    """Whether a client has sent a request since the test began."""
    return server.bench is not None and bool(server.bench.recorder.reported())


def collect(server: Server) -> list[Section]:
    """Titles and texts of the report about a server. Runs in the server's event loop."""
    since = server.bench.recorder.since if server.bench is not None else 0
    sections = (
        ("kubist: last requests", _requests(server)),
        ("kubist: last Events", _events(server, since)),
        ("kubist: changed objects", _changes(server, since)),
    )
    return [(title, "\n".join(line[:WIDTH] for line in lines)) for title, lines in sections if lines]


def _requests(server: Server) -> list[str]:
    bench = server.bench
    if bench is None:
        return []
    entries = bench.recorder.reported()
    lines = [f"… {len(entries) - REQUESTS} earlier requests"] if len(entries) > REQUESTS else []
    for recorded in entries[-REQUESTS:]:
        request = RecordedRequest(recorded.state())
        by = f"{request.user or 'nobody'} {request.user_agent}".strip()
        lines.append(
            f"{request.time:%H:%M:%S.%f} {request.verb} {request.target} -> {request.result}  [{by}]"
        )
        if request.status >= 400 and isinstance(request.response, dict):
            lines.append(f"    {request.response.get('message', '')}")
    return lines


def _events(server: Server, since: int) -> list[str]:
    versions = [
        (int(event["metadata"]["resourceVersion"]), event)
        for event in server.api.cluster.list("events", None)
    ]
    events = [event for version, event in versions if version > since]
    events.sort(key=lambda event: (_event_time(event), int(event["metadata"]["resourceVersion"])))
    return [_event_line(event) for event in events[-EVENTS:]]


def _event_time(event: Object) -> str:
    times = (event.get("lastTimestamp"), event.get("eventTime"), event["metadata"].get("creationTimestamp"))
    return next((time for time in times if time), "")


def _event_line(event: Object) -> str:
    about = event.get("involvedObject") or {}
    target = f"{about.get('kind', '')} {about.get('namespace', '')}/{about.get('name', '')}"
    count = event.get("count") or 1
    times = f" ({count} times)" if count > 1 else ""
    return f"{event.get('type', '')} {event.get('reason', '')} {target}: {event.get('message', '')}{times}"


def _changes(server: Server, since: int) -> list[str]:
    by_key: dict[str, list[Change]] = {}
    for collection in server.registry.cache.collections.values():
        for change in reversed(collection.window):
            if change.revision <= since:
                break
            entry = change.new or change.old
            if entry is not None:
                by_key.setdefault(entry.key, []).append(change)
    groups = sorted(by_key.values(), key=lambda changes: changes[0].revision)
    described = [lines for changes in groups if (lines := _described(changes[::-1]))]
    rows = [f"… {len(described) - OBJECTS} earlier objects"] if len(described) > OBJECTS else []
    return rows + [line for lines in described[-OBJECTS:] for line in lines]


def _described(changes: list[Change]) -> list[str]:
    """One object: what happened to it, and a short diff if it changed."""
    first, last = changes[0].old, changes[-1].new
    entry = last or first
    before = first.object() if first is not None else None
    after = last.object() if last is not None else None
    obj = after or before
    if entry is None or obj is None or obj["kind"] in LEFT_OUT:
        return []
    name = f"{entry.namespace}/{entry.name}" if entry.namespace else entry.name
    times = "" if len(changes) == 1 else f", {len(changes)} writes"
    if before is None or after is None:
        return [f"{obj['kind']} {name}: {'created' if after else 'deleted'}{times}"]
    if obj["kind"] == "Secret":
        mark_changed(before, after)
    lines = diff_lines(before, after)
    more = [f"    … {len(lines) - DIFF_LINES} more"] if len(lines) > DIFF_LINES else []
    return [f"{obj['kind']} {name}: changed{times}", *(f"    {line}" for line in lines[:DIFF_LINES]), *more]
