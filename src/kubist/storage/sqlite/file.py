"""Database file of the SQLite store: exclusive lock, durable settings, and explanations of SQLite's errors.

This module creates the tables and does not read them. It may import only the errors of `store`. `write_database` makes
the file for a store on disk that starts from an image.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import shlex
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from kubist.base import files
from kubist.storage.store import DamageFound, OpenFailed, StoreDamaged, StoreInUse, Unavailable

if TYPE_CHECKING:
    from kubist.storage.memory import StoreImage

log = logging.getLogger("kubist.storage")

APPLICATION_ID = 0x4B756273  # "Kubs"
SCHEMA_VERSION = 1
DIGEST_TABLE = "content_digest"
"""Table of a backup; see `backup/database_reading.py`."""

# `value` is the last column, so that the other columns are read without its overflow pages. Every SQLite
# index ends with the row id, here the revision.
SCHEMA = f"""
CREATE TABLE changes (
    revision INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    create_revision INTEGER NOT NULL,
    previous INTEGER NOT NULL,
    value BLOB
);
CREATE INDEX changes_by_key ON changes (key);
CREATE TABLE expiries (at REAL, revision INTEGER, PRIMARY KEY (at, revision)) WITHOUT ROWID;
CREATE TABLE compaction (revision INTEGER NOT NULL);
INSERT INTO compaction VALUES (0);
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
"""

LEAST_FREE = 256 << 10
"""Minimum free space in bytes. A disk with less counts as full, although small writes may fit into SQLite's log."""
WAL_PAGES = 4000
WAL_BYTES = 64 << 20


class DatabaseFile:
    """Both connections to one database: `writer` for transactions, `reader` for committed data."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._lock = take_lock(path)
        self._connections: list[sqlite3.Connection] = []
        try:
            _make_private(Path(path))
            self.writer = self._connect()
            self._prepare()
            self.reader = self._connect()
            # Statements now run on the event loop, so they must not wait for a lock. Callers retry later.
            for connection in self._connections:
                connection.execute("PRAGMA busy_timeout = 0")
        except sqlite3.Error as error:
            self.close()
            raise self.open_failed(error) from error
        except OSError as error:
            self.close()
            raise OpenFailed(f"{self} cannot be opened: {error.strerror}") from error
        except OpenFailed:
            self.close()
            raise

    def __str__(self) -> str:
        return self.path

    def explain(self, error: sqlite3.Error) -> str:
        """SQLite's error message. For a damaged file also the commands that help."""
        return explain(Path(self.path), error)

    def unavailable(self, error: sqlite3.Error) -> Unavailable:
        """Error for a statement that fails in an open store."""
        kind = DamageFound if is_damage(error) else Unavailable
        return kind(f"{self} is not available: {self.explain(error)}")

    def open_failed(self, error: sqlite3.Error) -> OpenFailed:
        """Error for a store that SQLite cannot open."""
        kind = StoreDamaged if is_damage(error) else OpenFailed
        return kind(f"{self} cannot be opened: {self.explain(error)}")

    def check_space(self) -> None:
        """Raises Unavailable for a full disk."""
        disk = os.statvfs(self.path)
        free = disk.f_bfree if os.geteuid() == 0 else disk.f_bavail  # root may use the reserved blocks
        if free * disk.f_frsize < LEAST_FREE:
            raise Unavailable(f"{self} is not available: the disk is full, free some space")

    def close(self) -> None:
        for connection in reversed(self._connections):
            connection.close()
        os.close(self._lock)

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        self._connections.append(connection)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA cache_size = -16384")
        connection.execute("PRAGMA temp_store = MEMORY")
        return connection

    def _prepare(self) -> None:
        """Checks that the file is a writable Kubist database and creates the tables of a new one."""
        execute = self.writer.execute
        (mode,) = execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise OpenFailed(f"{self.path} cannot be opened: its file system has no write-ahead log")
        execute(f"PRAGMA wal_autocheckpoint = {WAL_PAGES}")
        execute(f"PRAGMA journal_size_limit = {WAL_BYTES}")
        execute("BEGIN IMMEDIATE")
        (tables,) = execute("SELECT count(*) FROM sqlite_master").fetchone()
        if not tables:
            for statement in filter(str.strip, SCHEMA.split(";")):
                execute(statement)
        (application,) = execute("PRAGMA application_id").fetchone()
        (version,) = execute("PRAGMA user_version").fetchone()
        if (application, version) == (APPLICATION_ID, SCHEMA_VERSION):
            execute(f"DROP TABLE IF EXISTS {DIGEST_TABLE}")  # of a backup that was copied here
        execute("COMMIT")
        if application != APPLICATION_ID:
            raise OpenFailed(
                f"{self.path} cannot be opened: it is the database of another application: choose another --data-dir"
            )
        if version != SCHEMA_VERSION:
            raise OpenFailed(
                f"{self.path} cannot be opened: it has the unknown schema version {version}: use the "
                "version of Kubist that wrote it"
            )


_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CONSTRAINT)
"""Codes of errors in a damaged or foreign file. A row violates a constraint if an index lacks other rows."""


def is_damage(error: sqlite3.Error) -> bool:
    """Whether SQLite reports a damaged or foreign file."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF in _DAMAGE or "Could not decode to UTF-8" in str(error)


def damage(problem: str) -> sqlite3.DatabaseError:
    """Error for damage that SQLite does not notice."""
    error = sqlite3.DatabaseError(problem)
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error


def explain(path: Path, error: sqlite3.Error) -> str:
    """SQLite's error message. For a damaged file also the commands that help."""
    if not is_damage(error):
        return str(error)
    where = shlex.quote(str(path.parent))
    restore = f"`kubist restore --data-dir {where} --file BACKUP` puts a backup in its place"
    # `kubist doctor` cannot open it either
    if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_NOTADB:
        return f"{error}: the file is damaged. {restore}"
    return f"{error}: the file is damaged. `kubist doctor --data-dir {where}` says more, {restore}"


def _make_private(path: Path) -> None:
    """Creates the database with mode 0600, or sets that mode. SQLite gives its -wal and -shm files the same
    mode."""
    if path.is_dir():
        raise OpenFailed(f"{path} cannot be opened: it is a directory: choose another --data-dir")
    path = Path(os.path.realpath(path))  # Path.resolve raises RuntimeError for links in a circle
    mode = path.parent.stat().st_mode
    if mode & (stat.S_IWGRP | stat.S_IWOTH) and not mode & stat.S_ISVTX:
        log.warning("other users can replace files in %s: `chmod go-w` it", path.parent)
    try:
        os.close(files.create(path))
    except FileExistsError:
        for name in ("", "-wal", "-shm", "-journal"):
            with contextlib.suppress(FileNotFoundError):
                files.private(path.with_name(path.name + name))


def take_lock(path: str) -> int:
    """Locks `path` against other processes while the returned descriptor is open.

    The lock is on a separate file, because closing a second descriptor of the database would drop SQLite's own
    locks.
    """
    try:
        descriptor = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise OpenFailed(f"{path} cannot be opened: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise StoreInUse(
            f"{path} is in use by another process: stop that server or choose another --data-dir"
        ) from None
    except OSError as error:
        os.close(descriptor)
        raise OpenFailed(f"{path} cannot be locked: {error.strerror}") from error
    return descriptor


def write_database(path: Path, image: StoreImage) -> None:
    """Creates a database with all keys of an image and their revisions. Its history begins at the image's revision.

    A crash may leave an incomplete file, so the caller makes it durable (`files.sync`) before it counts.
    """
    os.close(files.create(path))
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode = OFF")
        database.execute("PRAGMA synchronous = OFF")
        database.execute("BEGIN")
        for statement in filter(str.strip, SCHEMA.split(";")):
            database.execute(statement)
        database.executemany(
            "INSERT INTO changes VALUES (?, ?, ?, 0, ?)",
            ((kv.mod_revision, kv.key, kv.create_revision, kv.value) for kv in image.values.values()),
        )
        revisions = {kv.mod_revision for kv in image.values.values()}
        database.executemany(
            "INSERT OR IGNORE INTO expiries VALUES (?, ?)",
            ((at, revision) for at, revision, _ in image.expiries if revision in revisions),
        )
        database.execute("UPDATE compaction SET revision = ?", (image.revision,))
        database.execute("COMMIT")
        # The store uses this mode. Changing it takes milliseconds, which would block the event loop.
        database.execute("PRAGMA journal_mode = WAL")
