"""Fault: a rule in use, with its counts; and the writer that holds, delays or cuts the events of a watch."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from random import Random
from weakref import WeakSet

import orjson

from kubist.api.resources.context import Context
from kubist.api.verbs.watch import Watcher
from kubist.base.http.messages import StreamWriter
from kubist.model.meta.object import Object
from kubist.testbench.faults.rule import ACTIONS, COMPANIONS, FaultRule

MARK = "kubist.io/faults"
"""Audit annotation of a request with the rules that acted on it, as JSON."""


class Fault:
    """One rule of a server. `spec` is the rule as the client sent it."""

    def __init__(self, id_: str, spec: Object, rule: FaultRule, stale_version: int) -> None:
        self.id = id_
        self.spec = spec
        self.rule = rule
        names = {*ACTIONS, *COMPANIONS} - {"seed"}
        self._actions = {name: value for name, value in spec.items() if name in names and value is not None}
        self.stale_version = stale_version
        """Resource version of stale reads."""
        self.matches = 0
        """Requests that matched, whether the rule acted on them or not."""
        self.hits = 0
        """Requests and watches on which the rule acted."""
        self.spared = 0
        """Matching requests of the test's own helpers."""
        self.removed = asyncio.Event()
        self._chances = Random(rule.seed)
        self._reserved = 0
        """Watches that will get this fault."""
        self.watchers: WeakSet[Watcher] = WeakSet()
        """Watches that have this fault."""

    def state(self) -> Object:
        return {"id": self.id, **self.spec, "matches": self.matches, "hits": self.hits}

    def summary(self) -> str:
        """The rule in one line, and how many requests matched it."""
        rule = ", ".join(f"{name}={value!r}" for name, value in self.spec.items())
        spared = f"; it spared {self.spared} requests of the test's own helpers" if self.spared else ""
        return f"{rule}; {self.matches} requests matched{spared}"

    @property
    def is_used_up(self) -> bool:
        times = self.rule.times
        return bool(times) and self.hits + self._reserved + self._to_cut() >= times

    def _to_cut(self) -> int:
        """Open watches that this fault will cut."""
        return sum(
            isinstance(watcher.writer, _FaultyWriter) and watcher.writer.is_to_cut(self)
            for watcher in self.watchers
        )

    def counts(self) -> bool:
        """Counts a matching request. Returns whether the rule acts on it."""
        rule = self.rule
        if self.is_used_up or self.removed.is_set():
            return False
        self.matches += 1
        if rule.nth:
            return self.matches == rule.nth
        if rule.every:
            return self.matches % rule.every == 0
        return rule.probability is None or self._chances.random() < rule.probability

    def hit(self, ctx: Context) -> None:
        """Counts a request or a watch on which the rule acts, and marks it for recordings and the audit log."""
        self.hits += 1
        marks = acted_on(ctx)
        marks.append({"id": self.id, **self._actions})
        ctx.audit_annotations[MARK] = orjson.dumps(marks).decode()

    # Watches

    def reserve(self) -> None:
        """Counts a watch before it starts, so that `times` is exact."""
        self._reserved += 1

    def unreserve(self) -> None:
        self._reserved -= 1

    def act_on(self, watcher: Watcher) -> None:
        """Puts this fault on an open watch."""
        writer = _faulty_writer(watcher)
        if writer is None or self.removed.is_set():
            return
        rule = self.rule
        self.watchers.add(watcher)
        if rule.withhold_bookmarks:
            watcher.withholds_bookmarks = True
        if rule.pause:
            writer.pause(self, rule.pause)
        if rule.delay_events:
            writer.delay(self, rule.delay_events)
        if rule.cut_after is not None:
            writer.cut(self, rule.cut_after, partial(self.hit, watcher.ctx))
        else:
            self.hit(watcher.ctx)

    def remove(self) -> None:
        """Ends the fault and releases the requests and events that it holds."""
        self.removed.set()
        for watcher in self.watchers:
            if isinstance(watcher.writer, _FaultyWriter):
                watcher.writer.release(self)


def acted_on(ctx: Context) -> list[Object]:
    """Id and actions of each rule that acted on a request."""
    marks = ctx.audit_annotations.get(MARK)
    return list(orjson.loads(marks)) if marks is not None else []


FLUSH_STEP = 0.01
"""Seconds between two checks whether a client has read the last events before the cut."""
FLUSH_SECONDS = 5.0
"""Seconds after which a watch is cut even if the client has not read the events before the cut."""


class _FaultyWriter:
    """Writer of a watch with faults. Without faults it passes everything on.

    Held events count as buffered, so that the watch's limit of 8 MB applies to them.
    """

    def __init__(self, inner: StreamWriter) -> None:
        self._inner = inner
        self._loop = asyncio.get_running_loop()
        self._delayed: deque[tuple[float, bytes]] = deque()
        """Events that wait, with the time from which they may be sent."""
        self._held_bytes = 0
        self._on_room: Callable[[], None] | None = None
        """Callback that waits for the held events."""
        self._pauses: dict[object, float] = {}
        """Time at which each pause ends."""
        self._delays: dict[object, float] = {}
        self._cuts: dict[object, tuple[int, Callable[[], None]]] = {}
        """Events left before each cut, and the callback that counts it."""
        self._closing = False
        self._is_cut = False
        self._timer: asyncio.TimerHandle | None = None

    # Faults

    def pause(self, token: object, seconds: float) -> None:
        """Holds all events for a time, or until `release`."""
        self._pauses[token] = self._loop.time() + seconds
        self._send_due()

    def delay(self, token: object, seconds: float) -> None:
        """Sends every event later, until `release`."""
        self._delays[token] = seconds

    def cut(self, token: object, events: int, done: Callable[[], None]) -> None:
        """Cuts the connection after a number of events. `done` is called then."""
        self._cuts[token] = (events, done)
        if not events:
            self._cut(token)

    def release(self, token: object) -> None:
        """Ends a fault. Held events are sent at once if no other fault holds them."""
        self._cuts.pop(token, None)
        if self._delays.pop(token, None) is not None and not self._delays:
            self._delayed = deque((0.0, event) for _, event in self._delayed)
        self._pauses.pop(token, None)
        self._send_due()

    def is_to_cut(self, token: object) -> bool:
        """Whether a fault will still cut this watch."""
        return token in self._cuts and not self.closed

    # Writer

    @property
    def buffered(self) -> int:
        return self._held_bytes + self._inner.buffered

    @property
    def closed(self) -> bool:
        return self._inner.closed or self._closing or self._is_cut

    @property
    def on_room(self) -> Callable[[], None] | None:
        return self._on_room or self._inner.on_room

    @on_room.setter
    def on_room(self, callback: Callable[[], None] | None) -> None:
        if self._delayed:
            self._on_room = callback
        else:
            self._inner.on_room = callback

    def write(self, data: bytes) -> None:
        if self.closed:
            return
        if self._delayed or self._pauses or self._delays:
            due = self._loop.time() + sum(self._delays.values()) if self._delays else 0.0
            self._delayed.append((due, data))
            self._held_bytes += len(data)
            self._send_due()
        else:
            self._inner.write(data)
        for token, (left, done) in list(self._cuts.items()):
            self._cuts[token] = (left - 1, done)
            if left <= 1:
                self._cut(token)

    def close(self) -> None:
        """Ends the stream after the held events."""
        self._closing = True
        if not self._delayed:
            self._inner.close()

    def abort(self) -> None:
        self._forget()
        self._inner.abort()

    # Held events

    def _send_due(self) -> None:
        """Sends the events whose time has come, and waits for the next."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._inner.closed:
            self._forget()
            return
        now = self._loop.time()
        for token in [token for token, end in self._pauses.items() if end <= now]:
            del self._pauses[token]
        while self._delayed and not self._pauses and self._delayed[0][0] <= now:
            _, data = self._delayed.popleft()
            self._held_bytes -= len(data)
            self._inner.write(data)
        if self._delayed or self._pauses:
            due = max(self._pauses.values()) if self._pauses else self._delayed[0][0]
            # Checks once a second whether the client is still connected, because held events take memory.
            self._timer = self._loop.call_at(min(due, now + 1.0), self._send_due)
            return
        if self._on_room is not None:
            self._inner.on_room, self._on_room = self._on_room, None
        if self._closing:
            self._inner.close()

    def _cut(self, token: object) -> None:
        _, done = self._cuts.pop(token)
        if not self._is_cut:
            self._is_cut = True
            done()
            self._loop.call_later(FLUSH_STEP, self._abort_when_read, self._loop.time() + FLUSH_SECONDS)

    def _abort_when_read(self, deadline: float) -> None:
        """Aborts the connection when the client has the events before the cut."""
        if not self._inner.closed and self.buffered and self._loop.time() < deadline:
            self._loop.call_later(FLUSH_STEP, self._abort_when_read, deadline)
        else:
            self.abort()

    def _forget(self) -> None:
        self._delayed.clear()
        self._pauses.clear()
        self._held_bytes = 0
        self._on_room = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _faulty_writer(watcher: Watcher) -> _FaultyWriter | None:
    """Writer that applies faults to an open watch, placed in front of the watch's own writer. None if the watch is
    closed."""
    writer = watcher.writer
    if writer is None or writer.closed:
        return None
    if not isinstance(writer, _FaultyWriter):
        writer = watcher.writer = _FaultyWriter(writer)
    return writer
