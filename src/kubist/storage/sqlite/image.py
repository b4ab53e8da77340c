"""SQLite file with the content of a store image, for a store on disk that starts from it."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from kubist.base import files
from kubist.storage.memory import StoreImage
from kubist.storage.sqlite.file import SCHEMA


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
        held = {kv.mod_revision for kv in image.values.values()}
        database.executemany(
            "INSERT OR IGNORE INTO expiries VALUES (?, ?)",
            ((at, revision) for at, revision, _ in image.expiries if revision in held),
        )
        database.execute("UPDATE compaction SET revision = ?", (image.revision,))
        database.execute("COMMIT")
        # The store uses this mode. To change it takes milliseconds, which would be the event loop's.
        database.execute("PRAGMA journal_mode = WAL")
