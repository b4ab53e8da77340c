"""SQLite store for one machine: a log of changes in one file. A write is durable before its response.

This process owns the file, so every read and watch is at the revision that `Writer` has published. A watch with
a slow reader has a bounded queue; after an overflow it continues from the log.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence

from kubist.storage.hub import Hub
from kubist.storage.retention import Retention
from kubist.storage.sqlite import log as log
from kubist.storage.sqlite.file import DatabaseFile
from kubist.storage.sqlite.writer import Writer
from kubist.storage.store import Batch, Compacted, FutureRevision, KeyValue, Scan, Unavailable, Write


class SqliteStore:
    """`Store` in the file `path`. Keeps `history` seconds of changes."""

    local = True

    def __init__(self, path: str, *, history: float = 300.0) -> None:
        self._path = path
        self._history = history
        self._hub = Hub()
        self._open = False

    async def open(self) -> None:
        self._file = DatabaseFile(self._path)
        self._reader = self._file.reader
        try:
            self._hub.revision = log.last_revision(self._reader)
            self._writer = Writer(self._file, self._hub)
        except sqlite3.Error as error:
            self._file.close()
            raise self._file.open_failed(error) from error
        self._open = True
        self._retention = Retention(self._history, lambda: self._hub.revision, self._compact_old)

    async def close(self) -> None:
        """Finishes queued writes, then closes the file."""
        if not self._open:
            return
        self._open = False
        self._retention.stop()
        await self._writer.stop()
        self._hub.fail("the store is closed")
        self._file.close()

    async def revision(self) -> int:
        return self._hub.revision

    async def check(self) -> None:
        self._check_open()
        await self._writer.check()
        self._file.check_space()

    async def request_progress(self) -> None:
        self._hub.expect_progress(0.0)

    async def get(self, key: str, revision: int = 0) -> KeyValue | None:
        revision = self._readable(revision)
        try:
            return log.read(self._reader, key, revision)
        except sqlite3.Error as error:
            raise self._file.unavailable(error) from error

    async def scan(self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0) -> Scan:
        while True:
            at = self._readable(revision)
            items, more = await self._collect(prefix, start, limit, at)
            if at >= self._writer.compacted:
                return Scan(at, items, more)

    async def _collect(self, prefix: str, start: str, limit: int, at: int) -> tuple[list[KeyValue], bool]:
        """Keys at revision `at`, read page by page so that the event loop is not blocked for long."""
        items: list[KeyValue] = []
        start, end = max(prefix, start), log.prefix_end(prefix)
        while True:
            rows = limit - len(items) if limit else log.PAGE_ROWS
            try:
                page, more = log.scan_page(self._reader, start, end, at, rows)
            except sqlite3.Error as error:
                raise self._file.unavailable(error) from error
            items += page
            if not more or len(items) == limit:
                return items, more
            start = items[-1].key + "\0"
            await asyncio.sleep(0)
            self._check_open()

    async def create(self, key: str, value: bytes, *, ttl: int = 0) -> int:
        self._check_open()
        self._retention.resume()
        return await self._writer.write(key, value, 0, ttl)

    async def update(self, key: str, value: bytes, expected: int, *, ttl: int = 0) -> int:
        self._check_open()
        self._retention.resume()
        return await self._writer.write(key, value, expected or -1, ttl)

    async def delete(self, key: str, expected: int) -> int:
        self._check_open()
        self._retention.resume()
        return await self._writer.write(key, None, expected or -1)

    async def write_all(self, writes: Sequence[Write]) -> int:
        self._check_open()
        self._retention.resume()
        return await self._writer.write_all(writes)

    def watch(self, prefix: str, after: int) -> AsyncIterator[Batch]:
        return self._hub.watch(prefix, after, self._replay)

    async def _replay(self, prefix: str, after: int, target: int) -> AsyncIterator[Batch]:
        self._check_open()
        end = log.prefix_end(prefix)
        if after >= target:
            yield Batch(target, ())
        while after < target:
            self._check_open()
            if after < self._writer.compacted:
                raise Compacted(self._writer.compacted)
            try:
                events, after = log.replay_page(self._reader, prefix, end, after, target)
            except sqlite3.Error as error:
                raise self._file.unavailable(error) from error
            if events or after == target:
                yield Batch(after, tuple(events))
            await asyncio.sleep(0)

    async def compact(self, revision: int) -> None:
        self._check_open()
        if revision > self._hub.revision:
            raise FutureRevision(self._hub.revision)
        await self._writer.compact(revision)

    def _compact_old(self, revision: int) -> None:
        if revision > self._writer.compacted:
            # A failure is not reported, because the next attempt follows soon.
            self._writer.compact(revision).add_done_callback(asyncio.Future.exception)

    def _readable(self, revision: int) -> int:
        self._check_open()
        if revision > self._hub.revision:
            raise FutureRevision(self._hub.revision)
        if 0 < revision < self._writer.compacted:
            raise Compacted(self._writer.compacted)
        return revision or self._hub.revision

    def _check_open(self) -> None:
        if not self._open:
            raise Unavailable("the store is closed")
