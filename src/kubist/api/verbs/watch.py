"""watch: every change to a selection since a resource version, in order and exactly once. The cache's dispatch writes
to the stream directly; nothing waits for a watcher."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Iterable, Iterator
from operator import length_hint
from typing import Any

from kubist.api.representation.representation import Representation
from kubist.api.resources.context import Seat
from kubist.api.verbs import resource_versions
from kubist.api.verbs.options import ListOptions, check_initial_events, list_options
from kubist.api.verbs.resource_request import ResourceRequest
from kubist.api.verbs.responses import negotiate_stream
from kubist.api.verbs.selection import Selection
from kubist.api.verbs.storage_version import check_cache_is_convertible, entry_in_request_version
from kubist.api.verbs.websockets import is_websocket, watch_protocol
from kubist.base.http.messages import Answer, Response, Stream, StreamWriter
from kubist.model.meta import status
from kubist.model.schema.decode import decode
from kubist.storage.cache.cache import Change, Collection, Entry
from kubist.storage.store import Compacted, Unavailable

BOOKMARK_SECONDS = 60.0
BUFFER_LIMIT = 8 << 20
"""Buffer limit of a watcher in bytes, beyond its initial state. A watcher above it is disconnected."""
STATE_BYTES = 256 * 1024
"""Bytes of the initial state that are sent at a time, as the client reads them."""
WAITING_LIMIT = 10_000
"""Events that may wait for their conversion before the watcher is disconnected."""
INITIAL_EVENTS_END = "k8s.io/initial-events-end"
Waiting = tuple[str, Entry | bytes, Change | None]
"""Event to send: its type, its entry, and the change. The watchers of a change share the event's bytes."""
EXPIRED = "The resourceVersion for the provided watch is too old."
"""Message of kube-apiserver's store. Its watch cache, which serves everything but events, has another one."""


async def watch(ctx: ResourceRequest) -> Answer:
    representation = negotiate_stream(ctx)
    if ctx.api.config.feature_gates and "sendInitialEvents" in ctx.query:
        check_initial_events(ctx.api.config.feature_gates)
    options = await list_options(ctx.query)
    selection = Selection(ctx, options)
    if "watch" not in ctx.resource.verbs:
        raise status.method_not_supported(ctx.resource.group, ctx.resource.resource, "watch")
    collection = ctx.api.registry.collection(ctx.resource)
    if not collection.loaded:
        await collection.ready()
    if ctx.resource.custom:
        check_cache_is_convertible(ctx, collection)
    await selection.ready(collection)
    protocol = watch_protocol(ctx.request) if is_websocket(ctx.request) else ""
    if isinstance(protocol, Response):
        return protocol
    watcher = Watcher(ctx, collection, selection, representation, options)
    await watcher.position()
    if watcher.initial:
        await representation.prepare(selection.candidates(collection, ""))
    watcher.seat, ctx.seat = ctx.seat, None
    headers = [(b"Content-Type", representation.stream_type.encode())]
    return Stream(200, headers, watcher.start, watcher.stopped, protocol, prefix=representation.length_bytes)


class Watcher:
    """One open watch."""

    def __init__(
        self,
        ctx: ResourceRequest,
        collection: Collection,
        selection: Selection,
        representation: Representation,
        options: ListOptions,
    ) -> None:
        self.cache = ctx.api.registry.cache
        self.watchers = ctx.api.watchers
        self.ctx = ctx
        self.collection = collection
        self.selection = selection
        self.representation = representation
        self.options = options
        self.bookmarks = options.allow_watch_bookmarks
        low = ctx.api.config.min_request_timeout
        self.seconds = float(options.timeout_seconds or 0) or low * (1 + random.random())
        self.after = 0
        """Changes up to this version are not sent."""
        self.initial = options.send_initial_events is True
        self.past: list[Change] = []
        self.seat: Seat | None = None
        """Seats in the priority level, until the initial events are sent."""
        self.error: status.APIError | None = None
        self._room = 0
        """Buffer limit of this watcher in bytes."""
        self.writer: StreamWriter | None = None
        """Writer of the stream, set by `start`. The test bench wraps it."""
        self.withholds_bookmarks = False
        """Whether the periodic bookmarks are omitted, as a fault. The one after the initial state is sent."""
        self.sent = 0
        """Number of written events, including bookmarks."""
        self._timers: list[asyncio.TimerHandle] = []
        self._state: Iterator[Entry] | None = None
        """Rest of the initial state."""
        self._backlog: list[bytes] = []
        """Events that wait for the initial state."""
        self._backlog_size = 0
        self._waiting: deque[Waiting] = deque()
        self._sender: asyncio.Task[None] | None = None

    async def position(self) -> None:
        """Start with the newest state, or with the changes since a resource version."""
        requested_version = self.options.resource_version
        version = resource_versions.parse(self.ctx, requested_version) if requested_version else 0
        if self.initial or (not version and self.options.send_initial_events is None):
            self.initial = True
            try:
                if version:
                    await self._reach(version)
                elif not requested_version:
                    await self.cache.catch_up()
            except Unavailable as error:
                raise status.unavailable(str(error)) from None
            return
        self.after = version or self.cache.revision
        if self.after < self.ctx.resource.since:
            self.error = self._expired(self.ctx.resource.since)
        elif self.after < self.collection.window_start:
            try:
                self.past = await self.collection.history(self.after)
            except Compacted as error:
                self.error = self._expired(min(error.revision, self.collection.window_start))
            except Unavailable as error:
                raise status.unavailable(str(error)) from None

    def _expired(self, oldest: int) -> status.APIError:
        """410 Expired. `oldest` is the oldest resource version that a watch may start after."""
        if self.ctx.resource.resource == "events" and not self.ctx.resource.custom:
            return status.gone(EXPIRED)
        return status.gone(f"too old resource version: {self.after} ({oldest})")

    async def _reach(self, version: int) -> None:
        """Wait for a version that the cache has not reached; after the timeout the stream gets an error event."""
        try:
            await resource_versions.reach(self.ctx, version)
        except status.APIError as error:
            self.error = error

    def start(self, writer: StreamWriter) -> None:
        self.writer = writer
        try:
            self._start(writer)
        finally:
            if self._state is None and self.seat is not None:
                self.seat.initialized()

    def _start(self, writer: StreamWriter) -> None:
        if not self.representation.watchable:
            writer.close()
            return
        if self.error is not None:
            writer.write(self.representation.event_value("ERROR", self.error.status()))
            writer.close()
            return
        self.watchers.setdefault(self.collection.kind.prefix, set()).add(self)
        self.collection.subscribe(self, self._deliver)
        loop = asyncio.get_running_loop()
        self._timers = [loop.call_later(self.seconds, self.end)]
        if self.initial:
            self._send_state()
        else:
            seen = max(self.after, self.past[-1].revision if self.past else 0)
            if self.past:
                self._deliver(self.past)
                self.past = []
            self.after = seen
            changes = self.collection.since(seen)
            if changes is None:
                self.end()
                return
            self._deliver(changes)
            self.after = max(seen, self.cache.revision) if seen <= self.cache.revision else seen
        self._room = writer.buffered + BUFFER_LIMIT
        if self.bookmarks:
            self._schedule_bookmark(self.seconds)

    def written_version(self) -> int:
        """Resource version up to which all events have been written."""
        if self._state is not None:
            return self.after
        for _, _, change in self._waiting:
            if change is not None:
                return change.revision - 1
        return max(self.after, self.cache.revision)

    def _write(self, events: list[bytes]) -> None:
        """Send events; disconnects a watcher over its buffer limit. Watchers share the buffered bytes of an event."""
        writer = self.writer
        assert writer is not None
        for event in events:
            writer.write(event)
        self.sent += len(events)
        if self._room and writer.buffered > self._room:
            self._cut_off()

    def _cut_off(self) -> None:
        self.stopped()
        if self.writer is not None:
            self.writer.abort()

    def _converting(self) -> bool:
        """Whether some objects may be stored in another version than the requested one. Events then wait for their
        conversion, in order."""
        custom = self.ctx.resource.custom
        return custom is not None and len(custom.conversion.versions) > 1

    def _send_state(self) -> None:
        if self._converting():
            entries = [e for e in self.selection.candidates(self.collection, "") if self.selection.matches(e)]
            self.after = self.cache.revision
            self._later([("ADDED", entry, None) for entry in entries])
            self._state_sent()
            return
        candidates = self.selection.candidates(self.collection, "")
        self._state = iter([entry for entry in candidates if self.selection.matches(entry)])
        self.after = self.cache.revision
        self._send_more_state()

    def _send_more_state(self) -> None:
        writer, state, event, size = self.writer, self._state, self.representation.event, 0
        if writer is None or state is None:
            return
        left = length_hint(state)
        for entry in state:
            added = event("ADDED", entry)
            writer.write(added)
            size += len(added)
            if size >= STATE_BYTES:
                self.sent += left - length_hint(state)
                writer.on_room = self._send_more_state
                return
        self.sent += left
        self._state = None
        self._state_sent()
        if self._backlog:
            backlog, self._backlog = self._backlog, []
            self._write(backlog)

    def _state_sent(self) -> None:
        if self.seat is not None:
            self.seat.initialized()
        if self.bookmarks:
            self.write_initial_events_end()

    def write_initial_events_end(self) -> None:
        """Send the bookmark that ends the initial state."""
        self._write_bookmark(self._bookmark(self.after, {INITIAL_EVENTS_END: "true"}))

    def _behind_state(self, events: list[bytes]) -> None:
        """Buffer events until the initial state has been sent; disconnects a watcher over its buffer limit."""
        self._backlog += events
        self._backlog_size += sum(map(len, events))
        if self._backlog_size > BUFFER_LIMIT:
            self._cut_off()

    def _deliver(self, changes: Iterable[Change]) -> None:
        matches, event, after = self.selection.matches, self.representation.shared_event, self.after
        converting = self._converting()
        out = []
        for change in changes:
            if change.revision <= after:
                continue
            old, new = change.old, change.new
            if converting:
                self._deliver_later(change)
            elif new is not None and matches(new):
                out.append(event("MODIFIED" if old is not None and matches(old) else "ADDED", change, new))
            elif old is not None and matches(old):
                out.append(event("DELETED", change, change.last()))
        if out and self._state is not None:
            self._behind_state(out)
        elif out:
            self._write(out)

    def _deliver_later(self, change: Change) -> None:
        if self.selection.converts:
            self._later([("", change.new or change.last(), change)])
        elif (event := self._event(change)) is not None:
            self._later([event])

    def _event(self, change: Change) -> Waiting | None:
        """Event of a change for this selection: ADDED, MODIFIED or DELETED, as objects enter and leave it."""
        matches, old, new = self.selection.matches, change.old, change.new
        if new is not None and matches(new):
            return ("MODIFIED" if old is not None and matches(old) else "ADDED", new, change)
        return ("DELETED", change.last(), change) if old is not None and matches(old) else None

    def _later(self, events: list[Waiting]) -> None:
        self._waiting += events
        if self._room and len(self._waiting) > WAITING_LIMIT:
            self._cut_off()
        elif self._sender is None or self._sender.done():
            self._sender = asyncio.ensure_future(self._send_waiting())

    async def _send_waiting(self) -> None:
        """Convert and send events in order. A failed conversion ends the watch."""
        while self._waiting:
            type_, entry, change = self._waiting.popleft()
            if isinstance(entry, bytes):
                self._write([entry])
                continue
            try:
                if not type_ and change is not None:
                    await self.selection.see((change.old, change.new))
                    event = self._event(change)
                    if event is None:
                        continue
                    type_, entry, _ = event
                    assert not isinstance(entry, bytes)
                versioned = await entry_in_request_version(self.ctx, entry)
            except status.APIError as error:
                self._write([self.representation.event_value("ERROR", error.status())])
                self.end()
                return
            if change is None:
                self._write([self.representation.event(type_, versioned)])
            else:
                self._write([self.representation.shared_event(type_, change, versioned)])

    def _bookmark(self, version: int, annotations: dict[str, str] | None = None) -> bytes:
        resource = self.ctx.resource
        metadata: dict[str, Any] = {"resourceVersion": str(version)}
        if annotations:
            metadata["annotations"] = annotations
        obj: dict[str, Any] = {"kind": resource.kind, "apiVersion": resource.api_version}
        obj.update(decode(resource.schema, {}) if not resource.custom else {})
        obj["metadata"] = metadata
        resource.strategy.complete_bookmark(obj)
        return self.representation.event_value("BOOKMARK", obj)

    def _write_bookmark(self, bookmark: bytes) -> None:
        """Send a bookmark, after the events of earlier versions that wait for their conversion."""
        if self._converting():
            self._later([("BOOKMARK", bookmark, None)])
        else:
            self._write([bookmark])

    def _schedule_bookmark(self, left: float) -> None:
        """Send a bookmark every minute, and one shortly before the timeout so that the client can resume there."""
        delay = min(BOOKMARK_SECONDS, left - 2.0)
        if delay > 0:
            later = asyncio.get_running_loop().call_later(delay, self._send_bookmark, left - delay)
            self._timers = [self._timers[0], later]

    def _send_bookmark(self, left: float) -> None:
        if self.after <= self.cache.revision and self._state is None and not self.withholds_bookmarks:
            self._write_bookmark(self._bookmark(self.cache.revision))
        self._schedule_bookmark(left)

    def end(self) -> None:
        """Close the stream cleanly."""
        if self.writer is not None:
            self.writer.close()
        self.stopped()

    def stopped(self) -> None:
        if self.seat is not None:
            self.seat.leave(0)
            self.seat = None
        for timer in self._timers:
            timer.cancel()
        self._waiting.clear()
        self._state, self._backlog = None, []
        self._timers = []
        if self._sender is not None and self._sender is not asyncio.current_task():
            self._sender.cancel()
        self.collection.unsubscribe(self)
        open_ = self.watchers.get(self.collection.kind.prefix)
        if open_ is not None:
            open_.discard(self)
