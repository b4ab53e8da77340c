"""Digest of the content of a backup. SQLite finds a damaged structure of its file, but no damaged value."""

from __future__ import annotations

import hashlib
import sqlite3

from kubist.storage.sqlite.file import DIGEST_TABLE


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
    found = database.execute(f"SELECT sha256 FROM {DIGEST_TABLE}").fetchone()
    return found is not None and found[0] == _digest(database)


def _tables(database: sqlite3.Connection) -> list[str]:
    return [
        name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1")
    ]


def _digest(database: sqlite3.Connection) -> str:
    """SHA-256 of the names and rows of all tables, each value with its type and length."""
    digest = hashlib.sha256()
    names = [name for name in _tables(database) if name != DIGEST_TABLE]
    factory, database.text_factory = database.text_factory, bytes  # damaged text may be no UTF-8
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
