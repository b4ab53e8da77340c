"""Snapshot files: the content of a store at one revision, in the form of a backup without keys.

`kubist restore` accepts a snapshot file, and every function here accepts the file of `kubist backup`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from sortedcontainers import SortedDict

from kubist.base import files
from kubist.storage.backup.database_reading import all_damages, open_database
from kubist.storage.memory import StoreImage
from kubist.storage.sqlite.file import SCHEMA
from kubist.storage.sqlite.log import last_revision
from kubist.storage.store import KeyValue, OpenFailed, StoreDamaged

TABLE = "snapshot"
"""Table with the description of a snapshot."""
_NEWEST = """
    SELECT key, value, create_revision, revision FROM changes
    JOIN (SELECT max(revision) AS newest FROM changes GROUP BY key) ON revision = newest WHERE value IS NOT NULL
"""


class SnapshotInfo(NamedTuple):
    """Description of a snapshot file."""

    created: str
    """Time on the clock of the server. Empty in a backup."""
    revision: int
    objects: int
    size: int
    """Size of the file in bytes."""


def write_snapshot(path: Path, items: Iterable[KeyValue], revision: int, created: str) -> SnapshotInfo:
    """Writes a snapshot file, which is complete and durable or does not exist."""
    count = 0

    def rows() -> Iterable[tuple[int, str, int, bytes]]:
        nonlocal count
        for kv in items:
            count += 1
            yield kv.mod_revision, kv.key, kv.create_revision, kv.value

    with files.draft(path, durable=True) as draft, closing(sqlite3.connect(draft)) as database:
        database.execute("PRAGMA journal_mode = OFF")
        database.executescript(SCHEMA)
        database.executemany("INSERT INTO changes VALUES (?, ?, ?, 0, ?)", rows())
        database.execute("UPDATE compaction SET revision = ?", (revision,))
        database.execute(f"CREATE TABLE {TABLE} (created TEXT NOT NULL, objects INTEGER NOT NULL)")
        database.execute(f"INSERT INTO {TABLE} VALUES (?, ?)", (created, count))
        database.commit()
    return SnapshotInfo(created, revision, count, path.stat().st_size)


def read_info(path: Path) -> SnapshotInfo:
    """Description of a snapshot file. Raises OpenFailed."""
    with open_database(path, "file") as database:
        if database.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (TABLE,)).fetchone():
            created, objects = database.execute(f"SELECT created, objects FROM {TABLE}").fetchone()
        else:
            created, (objects,) = "", database.execute(f"SELECT count(*) FROM ({_NEWEST})").fetchone()
        return SnapshotInfo(str(created), last_revision(database), int(objects), path.stat().st_size)


def read_image(path: Path) -> StoreImage:
    """Content of a snapshot file or a backup, which is not changed. Raises OpenFailed."""
    if not path.is_file():
        raise OpenFailed(f"{path} does not exist: name the file of a snapshot or of `kubist backup`")
    with open_database(path, "file") as database:
        problems = all_damages(database)
        if problems:
            raise StoreDamaged(f"{path} is damaged: {problems[0]}. Choose another file")
        revision = last_revision(database)
        values = SortedDict((row[0], KeyValue(*row)) for row in database.execute(_NEWEST))
        return StoreImage(revision, revision, values)
