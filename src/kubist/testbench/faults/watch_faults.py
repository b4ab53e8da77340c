"""Faults of open watches: a writer between a watch and its stream that holds, delays or cuts its events."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from kubist.api.verbs.watch import Watcher
from kubist.base.http.messages import StreamWriter

FLUSH_STEP = 0.01
"""Seconds between two checks whether a client has read the last events before the cut."""
FLUSH_SECONDS = 5.0
"""Seconds after which a watch is cut even if the client has not read the events before the cut."""


class FaultyWriter:
    """Writer of a watch under faults. Without faults it passes everything on.

    Held events count as buffered, so that the watch's limit of 8 MB applies to them.
    """

    def __init__(self, inner: StreamWriter) -> None:
        self._inner = inner
        self._loop = asyncio.get_running_loop()
        self._held: deque[tuple[float, bytes]] = deque()
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
            self._held = deque((0.0, event) for _, event in self._held)
        self._pauses.pop(token, None)
        self._send_due()

    def is_to_cut(self, token: object) -> bool:
        """Whether a fault is still going to cut this watch."""
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
        if self._held:
            self._on_room = callback
        else:
            self._inner.on_room = callback

    def write(self, data: bytes) -> None:
        if self.closed:
            return
        if self._held or self._pauses or self._delays:
            due = self._loop.time() + sum(self._delays.values()) if self._delays else 0.0
            self._held.append((due, data))
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
        if not self._held:
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
        while self._held and not self._pauses and self._held[0][0] <= now:
            _, data = self._held.popleft()
            self._held_bytes -= len(data)
            self._inner.write(data)
        if self._held or self._pauses:
            due = max(self._pauses.values()) if self._pauses else self._held[0][0]
            # It looks once a second whether the client is still there, because the events need memory.
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
        self._held.clear()
        self._pauses.clear()
        self._held_bytes = 0
        self._on_room = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def faulty_writer(watcher: Watcher) -> FaultyWriter | None:
    """Writer of an open watch that takes faults, put in front of its own. None if the watch is closed."""
    writer = watcher.writer
    if writer is None or writer.closed:
        return None
    if not isinstance(writer, FaultyWriter):
        writer = watcher.writer = FaultyWriter(writer)
    return writer
