"""Reading of a store's file, or a backup of it, without changing it; the digest of the content of a backup.

SQLite finds a damaged structure of its file, but no damaged value. The digest finds both.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import orjson

from kubist.storage.encryption.unreadable import ENCRYPTED
from kubist.storage.sqlite.file import APPLICATION_ID, DIGEST_TABLE, SCHEMA_VERSION, explain, is_damage
from kubist.storage.sqlite.log import last_revision
from kubist.storage.store import OpenFailed, StoreDamaged


def write_digest(database: sqlite3.Connection) -> None:
    """Adds the digest of all other tables. A server removes it, because the content changes then."""
    database.execute(f"DROP TABLE IF EXISTS {DIGEST_TABLE}")
    value = _digest(database)
    database.execute(f"CREATE TABLE {DIGEST_TABLE} (sha256 TEXT NOT NULL)")
    database.execute(f"INSERT INTO {DIGEST_TABLE} VALUES (?)", (value,))


def matches_digest(database: sqlite3.Connection) -> bool:
    """Whether the content is as it was when the digest was written. Files without a digest match."""
    if DIGEST_TABLE not in _tables(database):
        return True
    row = database.execute(f"SELECT sha256 FROM {DIGEST_TABLE}").fetchone()
    return row is not None and row[0] == _digest(database)


def _tables(database: sqlite3.Connection) -> list[str]:
    return [
        name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1")
    ]


def _digest(database: sqlite3.Connection) -> str:
    """SHA-256 of the names and rows of all tables, each value with its type and length."""
    digest = hashlib.sha256()
    names = [name for name in _tables(database) if name != DIGEST_TABLE]
    factory, database.text_factory = database.text_factory, bytes  # damaged text may not be UTF-8
    try:
        for name in names:
            digest.update(b"%d table %s" % (len(name), name.encode()))
            for row in database.execute(f'SELECT * FROM "{name}" NOT INDEXED'):
                for value in row:
                    data = value if isinstance(value, bytes) else repr(value).encode()
                    digest.update(b"%d %s " % (len(data), type(value).__name__.encode()))
                    digest.update(data)
    finally:
        database.text_factory = factory
    return digest.hexdigest()


DATABASE = "kubist.db"
"""Name of the store's file in a data directory."""
NEWEST = "SELECT key, value FROM changes JOIN (SELECT max(revision) AS r FROM changes GROUP BY key) ON revision = r"
IS_ENCRYPTED = f"substr(value, 1, {len(ENCRYPTED)}) = x'{ENCRYPTED.hex()}'"


@contextmanager
def open_database(path: Path, flag: str = "--file") -> Iterator[sqlite3.Connection]:
    """Opens the store or backup that `flag` names for reading. Raises OpenFailed with the problem and the next step."""
    if not path.is_file():
        problem = "is not a file" if path.exists() else "does not exist"
        raise OpenFailed(f"{path} {problem}: check {'--data-dir' if path.name == DATABASE else '--file'}")
    if not path.stat().st_size:
        raise StoreDamaged(f"{path} is empty: it is not a store of Kubist")
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if application != APPLICATION_ID:
                raise OpenFailed(f"{path} is the database of another application, not a store of Kubist")
            if version != SCHEMA_VERSION:
                raise OpenFailed(
                    f"{path} has the unknown schema version {version}: use the version of Kubist that wrote it"
                )
            yield connection
    except sqlite3.Error as error:
        pass_interrupt_on(error)
        if not is_damage(error):
            raise OpenFailed(f"{path} cannot be read or copied: {error}") from None
        if path.name != DATABASE:
            raise StoreDamaged(f"{path} is not a usable backup: {error}. Choose another {flag}") from None
        raise StoreDamaged(f"{path} cannot be read: {explain(path, error)}") from None


def pass_interrupt_on(error: sqlite3.Error) -> None:
    """Raises KeyboardInterrupt if Ctrl-C ended a statement, because SQLite replaces it with its own error."""
    if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_INTERRUPT:
        raise KeyboardInterrupt from None


def damages(connection: sqlite3.Connection) -> list[str]:
    """Problems that SQLite finds in a database, one line each, or that the digest of a backup shows."""
    try:
        rows = [row for (row,) in connection.execute("PRAGMA integrity_check")]
        connection.execute("SELECT 1 FROM changes, expiries LIMIT 1").fetchone()
        last_revision(connection)
        if rows == ["ok"] and not matches_digest(connection):
            return ["its content does not match its checksum"]
    except sqlite3.DatabaseError as error:
        pass_interrupt_on(error)
        return [str(error)]
    lines = [line for row in rows if row != "ok" for line in row.splitlines()]
    return [line for line in lines if not line.startswith("*** in database")] or lines


def all_damages(connection: sqlite3.Connection) -> list[str]:
    """Like `damages`, and also the first value that contains no object."""
    problems = damages(connection)
    if not problems:
        for key, value in connection.execute(NEWEST):
            try:
                stored_metadata(key, value)
            except ValueError as error:
                return [str(error)]
    return problems


def stored_metadata(key: str, value: bytes | None) -> dict[str, Any] | None:
    """Metadata of a stored object. None for deleted and encrypted ones, and for allocations. Raises ValueError for
    another value."""
    if value is None or key.startswith("/registry/ranges/") or value.startswith(ENCRYPTED):
        return None
    try:
        metadata: dict[str, Any] = orjson.loads(value)["metadata"]
        metadata["name"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        raise ValueError(f"{key} does not contain an object") from None
    return metadata


def summary(connection: sqlite3.Connection) -> tuple[int, int]:
    """Number of keys in a store, and its revision."""
    (keys,) = connection.execute(f"SELECT count(*) FROM ({NEWEST}) WHERE value IS NOT NULL").fetchone()
    (revision,) = connection.execute("SELECT ifnull(max(revision), 0) FROM changes").fetchone()
    return keys, revision


def sealed_values(connection: sqlite3.Connection) -> int:
    """Number of encrypted values."""
    (count,) = connection.execute(f"SELECT count(*) FROM ({NEWEST}) WHERE {IS_ENCRYPTED}").fetchone()
    return int(count)
