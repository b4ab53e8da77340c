"""Log of changes in SQL: one row per revision. Every key can be read at every kept revision.

Functions on a connection. Each takes a few microseconds or reads one page. None uses the event loop.
"""

from __future__ import annotations

import sqlite3

from kubist.storage.sqlite.file import damage
from kubist.storage.store import Event, KeyValue

FIRST_REVISION = 1
"""Revision of an empty store, as in etcd. resourceVersion "0" has a special meaning, so 0 is not used."""

PAGE_ROWS = 256
PAGE_BYTES = 1 << 20
FETCHED_ROWS = 16

_LATEST = """
    SELECT value, create_revision, revision FROM changes WHERE key = ? ORDER BY revision DESC LIMIT 1
"""
_HELD = """
    SELECT value, create_revision, revision FROM changes
    WHERE key = ? AND revision <= ? ORDER BY revision DESC LIMIT 1
"""
_SCAN = """
    SELECT change.key, change.value, change.create_revision, change.revision
    FROM (SELECT max(revision) AS latest FROM changes
          WHERE key >= ? AND key < ? AND revision <= ? GROUP BY key) AS newest
    CROSS JOIN changes AS change ON change.revision = newest.latest
    WHERE change.value IS NOT NULL LIMIT ?
"""
_REPLAY = """
    SELECT change.revision, change.key, change.value, change.create_revision,
           change.previous, former.value, former.create_revision
    FROM changes AS change LEFT JOIN changes AS former ON former.revision = change.previous
    WHERE change.revision > ? AND change.revision <= ? AND change.key >= ? AND change.key < ?
    ORDER BY change.revision
"""
_APPEND = "INSERT INTO changes (revision, key, create_revision, previous, value) VALUES (?, ?, ?, ?, ?)"
_REVISION = """
    SELECT max(ifnull((SELECT max(revision) FROM changes), 0), (SELECT revision FROM compaction))
"""
_DUE = """
    SELECT at, expiries.revision, key FROM expiries LEFT JOIN changes ON changes.revision = expiries.revision
    WHERE at <= ? ORDER BY at LIMIT ?
"""
_SWEEP_SUPERSEDED = """
    DELETE FROM changes WHERE revision IN
    (SELECT previous FROM changes WHERE revision > ? AND revision <= ? AND previous > 0)
"""
_SWEEP_DELETIONS = "DELETE FROM changes WHERE revision > ? AND revision <= ? AND value IS NULL"


def last_revision(connection: sqlite3.Connection) -> int:
    (revision,) = connection.execute(_REVISION).fetchone()
    if not isinstance(revision, int):
        raise damage("the revision of the compaction is missing")
    return max(FIRST_REVISION, revision)


def compacted_revision(connection: sqlite3.Connection) -> int:
    (revision,) = connection.execute("SELECT revision FROM compaction").fetchone()
    return int(revision)


def read(connection: sqlite3.Connection, key: str, revision: int) -> KeyValue | None:
    """Value of `key` at `revision`. None: absent."""
    row = connection.execute(_HELD, (key, revision)).fetchone()
    if row is None or row[0] is None:
        return None
    return KeyValue(key, *row)


def scan_page(
    connection: sqlite3.Connection, start: str, end: str | bytes, revision: int, limit: int
) -> tuple[list[KeyValue], bool]:
    """Up to `limit` keys in [start, end) at `revision`, fewer if they are large. True: more keys follow."""
    limit = min(limit, PAGE_ROWS)
    items: list[KeyValue] = []
    size = 0
    cursor = connection.execute(_SCAN, (start, end, revision, limit + 1))
    while rows := cursor.fetchmany(FETCHED_ROWS):
        for row in rows:
            if len(items) == limit or size > PAGE_BYTES:
                cursor.close()
                return items, True
            items.append(KeyValue(*row))
            size += len(row[1])
    return items, False


def replay_page(
    connection: sqlite3.Connection, start: str, end: str | bytes, after: int, target: int
) -> tuple[list[Event], int]:
    """Changes of keys in [start, end) after `after`, and the revision up to which the list is complete."""
    target = min(target, after + PAGE_ROWS)
    events: list[Event] = []
    size = 0
    cursor = connection.execute(_REPLAY, (after, target, start, end))
    for revision, key, value, created, previous, former, former_created in cursor:
        kv = None if value is None else KeyValue(key, value, created, revision)
        prev = None if former is None else KeyValue(key, former, former_created, previous)
        events.append(Event(revision, key, kv, prev))
        size += len(value or b"") + len(former or b"")
        if size > PAGE_BYTES:
            cursor.close()
            return events, revision
    return events, target


def read_latest(cursor: sqlite3.Cursor, key: str) -> KeyValue | None:
    """Current value of `key`, read inside the open transaction."""
    row = cursor.execute(_LATEST, (key,)).fetchone()
    if row is None or row[0] is None:
        return None
    value, created, revision = row
    return KeyValue(key, value, created, revision)


def append(
    cursor: sqlite3.Cursor, revision: int, key: str, value: bytes | None, prev: KeyValue | None
) -> Event:
    """Records at `revision` that `key` changed from `prev` to `value`. None as value: deleted."""
    if prev is None:
        created, previous = revision, 0
    else:
        created, previous = prev.create_revision, prev.mod_revision
    cursor.execute(_APPEND, (revision, key, created, previous, value))
    return Event(revision, key, None if value is None else KeyValue(key, value, created, revision), prev)


def expire_at(cursor: sqlite3.Cursor, revision: int, at: float) -> None:
    """Schedules the expiry at Unix time `at` of the version that `revision` wrote. A later write cancels it."""
    cursor.execute("INSERT INTO expiries (at, revision) VALUES (?, ?)", (at, revision))


def next_expiry(connection: sqlite3.Connection) -> float | None:
    (at,) = connection.execute("SELECT min(at) FROM expiries").fetchone()
    return at if at is None else float(at)


def take_due(cursor: sqlite3.Cursor, now: float) -> list[KeyValue]:
    """Removes up to PAGE_ROWS due expiries and returns their keys. Overwritten keys are left out."""
    due: list[KeyValue] = []
    for at, revision, key in cursor.execute(_DUE, (now, PAGE_ROWS)).fetchall():
        cursor.execute("DELETE FROM expiries WHERE at = ? AND revision = ?", (at, revision))
        current = None if key is None else read_latest(cursor, key)
        if current is not None and current.mod_revision == revision:
            due.append(current)
    return due


def touch(cursor: sqlite3.Cursor) -> None:
    """Makes the open transaction write a page, without a change. SQLite skips an UPDATE to the same value."""
    cursor.execute("INSERT INTO expiries VALUES (0, 0)")
    cursor.execute("DELETE FROM expiries WHERE at = 0 AND revision = 0")


def sweep(connection: sqlite3.Connection, swept: int, target: int) -> int:
    """Deletes one page of history above `swept`, up to `target` at most. Returns the revision that it reached.

    An old version is deleted if its successor is at or below that revision. A deletion's record is deleted if it is
    itself at or below that revision.
    """
    mark = min(target, swept + PAGE_ROWS)
    connection.execute(_SWEEP_SUPERSEDED, (swept, mark))
    connection.execute(_SWEEP_DELETIONS, (swept, mark))
    connection.execute("UPDATE compaction SET revision = ?", (mark,))
    return mark


def prefix_end(prefix: str) -> str | bytes:
    """First key after all keys with `prefix`. SQLite sorts every blob after every text."""
    while prefix:
        last = ord(prefix[-1])
        if last < 0x10FFFF:
            return prefix[:-1] + chr(0xE000 if last == 0xD7FF else last + 1)
        prefix = prefix[:-1]
    return b""
