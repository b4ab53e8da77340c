"""Group commit: one transaction after another with the queued writes, expired keys and compaction.

Statements run on the event loop. Only COMMIT runs in a thread. Writes that arrive meanwhile form the next
transaction. Watches receive a transaction before its callers get their responses.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence

from kubist.base.clock import CURRENT, Timer
from kubist.storage.hub import Hub
from kubist.storage.sqlite import log as log
from kubist.storage.sqlite.commit import CommitThread, commit
from kubist.storage.sqlite.file import DatabaseFile
from kubist.storage.store import Conflict, Event, KeyValue, Unavailable, Write

BATCH_WRITES = 512
"""Maximum writes in one transaction, so that it blocks the event loop for a few milliseconds at most."""

MIN_WRITERS = 4
BATCH_WAIT = 0.002
LONGEST_WAIT = 0.01
"""With at least MIN_WRITERS recent writers, BEGIN is delayed while a write arrives every BATCH_WAIT seconds, for at
most LONGEST_WAIT seconds. One large transaction costs much less than two small ones."""

BUSY_RETRY = 0.02
BUSY_SECONDS = 5.0
"""Seconds that writes wait while another process locks the file. After that, writes fail until the lock is
released."""

CHECKED_SECONDS = 1.0
"""Seconds for which a successful write shows that writes work."""

EXPIRY_RETRY = 1.0
"""Seconds between a failed transaction and the next attempt to delete expired keys."""


class _Write:
    """One requested change: `value` None deletes, `expected` 0 creates."""

    __slots__ = ("answer", "expected", "key", "outcome", "ttl", "value")

    def __init__(
        self, key: str, value: bytes | None, expected: int, ttl: int, answer: asyncio.Future[int]
    ) -> None:
        self.key = key
        self.value = value
        self.expected = expected
        self.ttl = ttl
        self.answer = answer
        self.outcome: int | Exception = 0


class _Group(_Write):
    """Changes that are made together, or not at all."""

    __slots__ = ("writes",)

    def __init__(self, writes: Sequence[Write], answer: asyncio.Future[int]) -> None:
        super().__init__("", None, 0, 0, answer)
        self.writes = writes


class _Check(_Write):
    """Write of a page without a change."""

    __slots__ = ()


class Writer:
    """The only writer of a database. Publishes its changes to `hub`."""

    def __init__(self, file: DatabaseFile, hub: Hub) -> None:
        self._file = file
        self._connection = file.writer
        self._cursor = file.writer.cursor()
        self._hub = hub
        self._loop = asyncio.get_running_loop()
        self._queue: list[_Write] = []
        self._stopping = False

        # State of the open transaction, valid if `_busy`.
        self._busy = False
        self._scheduled = False
        self._timer: asyncio.TimerHandle | None = None
        """Timer that ends the wait of a transaction for more writes."""
        self._last_writers = 0
        """Number of recent writers: writes in the last transaction plus writes that arrived during its commit."""
        self._queued_before = 0
        self._waited = 0.0
        """Length of the queue at the last timer, and seconds waited so far."""
        self._checks = False
        self._wrote = -CHECKED_SECONDS
        """Loop time of the last transaction on disk."""
        self._in_doubt = False
        """Whether the log may be ahead of the hub, because a COMMIT reported an error but took effect."""
        self._blocked: float | None = None
        """Loop time since which another process locks the file."""
        self._batch: list[_Write] = []
        self._events: list[Event] = []
        self._sweep = 0

        self._expired = False
        self._clock = CURRENT.get()
        """The clock of the server that opens the store."""
        self._expiry: Timer | None = None
        self._expiry_due = 0.0
        self._expect_expiry(log.next_expiry(self._connection))

        self.compacted = self._swept = log.compacted_revision(self._connection)
        self._compactions: list[tuple[int, asyncio.Future[None]]] = []
        self._stopped: asyncio.Future[None] = self._loop.create_future()
        self._thread = CommitThread(file.writer, self._loop)

    def write(self, key: str, value: bytes | None, expected: int, ttl: int = 0) -> asyncio.Future[int]:
        answer: asyncio.Future[int] = self._loop.create_future()
        self._queue.append(_Write(key, value, expected, ttl, answer))
        self._schedule(patient=True)
        return answer

    def write_all(self, writes: Sequence[Write]) -> asyncio.Future[int]:
        answer: asyncio.Future[int] = self._loop.create_future()
        self._queue.append(_Group(writes, answer))
        self._schedule()
        return answer

    async def check(self) -> None:
        """Raises `Unavailable` if a write fails."""
        if self._loop.time() - self._wrote >= CHECKED_SECONDS:
            answer: asyncio.Future[int] = self._loop.create_future()
            self._queue.append(_Check("", None, 0, 0, answer))
            self._schedule()
            await answer

    def compact(self, revision: int) -> asyncio.Future[None]:
        """Rejects reads below `revision` from now on, and deletes that history page by page."""
        self.compacted = max(self.compacted, revision)
        done: asyncio.Future[None] = self._loop.create_future()
        self._compactions.append((revision, done))
        self._schedule()
        return done

    async def stop(self) -> None:
        """Commits the queued writes. Compaction and expiry continue at the next start."""
        self._stopping = True
        if self._expiry is not None:
            self._expiry.cancel()
        self._schedule()
        await self._stopped
        self._thread.stop()

    def _schedule(self, *, patient: bool = False) -> None:
        """Schedules a transaction after the current callbacks of the loop, because these may add writes to it."""
        if self._busy:
            return
        waits = patient and MIN_WRITERS <= self._last_writers > len(self._queue)
        if not self._scheduled:
            self._scheduled = True
            if waits:
                self._queued_before, self._waited = len(self._queue), 0.0
                self._timer = self._loop.call_later(BATCH_WAIT, self._wait_on)
            else:
                self._loop.call_soon(self._begin)
        elif self._timer is not None and not waits:
            self._timer.cancel()
            self._timer = None
            self._loop.call_soon(self._begin)

    def _wait_on(self) -> None:
        """Keeps waiting if more writes have arrived since the last timer."""
        self._waited += BATCH_WAIT
        if len(self._queue) == self._queued_before or self._waited >= LONGEST_WAIT:
            self._begin()
        else:
            self._queued_before = len(self._queue)
            self._timer = self._loop.call_later(BATCH_WAIT, self._wait_on)

    def _begin(self) -> None:
        self._scheduled = False
        self._timer = None
        self._busy = True
        self._batch, self._queue = self._queue[:BATCH_WRITES], self._queue[BATCH_WRITES:]
        self._events = []
        self._sweep = self._swept
        try:
            self._execute()
        except sqlite3.Error as error:
            if not (_busy(error) and self._retry_later()):
                self._end(error)
            return
        self._blocked = None
        if not (self._events or self._expired or self._checks) and self._sweep == self._swept:
            self._end(commit(self._connection))
        else:
            self._thread.commit(self._end)

    def _retry_later(self) -> bool:
        """Retries later because another process locks the file. False after BUSY_SECONDS."""
        now = self._loop.time()
        self._blocked = self._blocked or now
        if now - self._blocked >= BUSY_SECONDS:
            return False
        self._queue = self._batch + self._queue
        self._batch = []
        self._busy, self._scheduled = False, True
        self._loop.call_later(BUSY_RETRY, self._begin)
        return True

    def _execute(self) -> None:
        cursor, events = self._cursor, self._events
        cursor.execute("BEGIN IMMEDIATE")
        if self._in_doubt:
            self._catch_up(log.last_revision(self._connection))
            self._in_doubt = False
        revision = self._hub.revision
        now = self._clock.now()
        self._checks = any(isinstance(write, _Check) for write in self._batch)
        if self._checks:
            log.touch(cursor)
        for write in self._batch:
            if isinstance(write, _Check):
                continue
            if isinstance(write, _Group):
                revision = self._append_all(write, revision, now)
                continue
            try:
                current = log.read_latest(cursor, write.key)
                if (0 if current is None else current.mod_revision) != write.expected:
                    write.outcome = Conflict(current)
                    continue
                event = log.append(cursor, revision + 1, write.key, write.value, current)
            except ValueError as error:  # the key is not valid text
                write.outcome = error
                continue
            write.outcome = revision = event.revision
            events.append(event)
            if write.ttl:
                self._append_expiry(revision, now + write.ttl)
        if self._expired:
            for kv in log.take_due(cursor, now):
                revision += 1
                events.append(log.append(cursor, revision, kv.key, None, kv))
        if self._swept < self.compacted and not self._stopping:
            self._sweep = log.sweep(self._connection, self._swept, self.compacted)

    def _append_all(self, group: _Group, revision: int, now: float) -> int:
        """Makes the changes of a group, if all its keys are as expected. Returns the revision that it reached."""
        values: list[KeyValue | None] = []
        for write in group.writes:
            try:
                current = log.read_latest(self._cursor, write.key)
            except ValueError as error:  # the key is not valid text
                group.outcome = error
                return revision
            if (0 if current is None else current.mod_revision) != write.expected:
                group.outcome = Conflict(current)
                return revision
            values.append(current)
        for write, current in zip(group.writes, values, strict=True):
            revision += 1
            self._events.append(log.append(self._cursor, revision, write.key, write.value, current))
            if write.ttl:
                self._append_expiry(revision, now + write.ttl)
        group.outcome = revision
        return revision

    def _append_expiry(self, revision: int, at: float) -> None:
        log.expire_at(self._cursor, revision, at)
        self._expect_expiry(at)

    def _end(self, error: sqlite3.Error | None) -> None:
        self._busy = False
        batch, self._batch = self._batch, []
        self._last_writers = len(batch) + len(self._queue)
        if error is not None:
            self._roll_back()
            self._in_doubt = True
            self._wrote = -CHECKED_SECONDS
            failure = self._file.unavailable(error)
            for write in batch:
                if not write.answer.done():
                    write.answer.set_exception(failure)
        else:
            self._swept = self._sweep
            if self._events or self._checks:
                self._wrote = self._loop.time()
            if self._events:
                self._hub.publish(self._events[-1].revision, self._events)
            for write in batch:
                if write.answer.done():
                    continue
                if isinstance(write.outcome, int):
                    write.answer.set_result(write.outcome)
                else:
                    write.answer.set_exception(write.outcome)
        self._end_expiry(error)
        self._end_compactions(error)
        sweeps = self._swept < self.compacted and not error and not self._stopping
        if self._queue or self._expired or sweeps:
            self._schedule(patient=not (self._expired or sweeps or self._stopping))
        elif self._stopping and not self._stopped.done():
            self._stopped.set_result(None)

    def _roll_back(self) -> None:
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            return  # the next BEGIN reports the error

    def _catch_up(self, revision: int) -> None:
        """Publishes the changes that the log has and the hub does not."""
        while self._hub.revision < revision:
            events, reached = log.replay_page(self._connection, "", b"", self._hub.revision, revision)
            self._hub.publish(reached, events)

    def _expect_expiry(self, at: float | None) -> None:
        if at is None or self._stopping:
            return
        if self._expiry is not None:
            if self._expiry_due <= at:
                return
            self._expiry.cancel()
        self._expiry_due = at
        self._expiry = self._clock.call_after(max(0.0, at - self._clock.now()), self._expire)

    def _expire(self) -> None:
        self._expiry = None
        self._expired = True
        self._schedule()

    def _end_expiry(self, error: sqlite3.Error | None) -> None:
        if not self._expired:
            return
        self._expired = False
        if error is not None:
            self._expect_expiry(self._clock.now() + EXPIRY_RETRY)
        else:
            self._expect_expiry(log.next_expiry(self._connection))

    def _end_compactions(self, error: sqlite3.Error | None) -> None:
        waiting, self._compactions = self._compactions, []
        for revision, done in waiting:
            if done.done():
                continue
            if error is not None or (self._stopping and revision > self._swept):
                done.set_exception(Unavailable(f"{self._file} was not compacted: {error or 'closing'}"))
            elif revision <= self._swept:
                done.set_result(None)
            else:
                self._compactions.append((revision, done))


def _busy(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
