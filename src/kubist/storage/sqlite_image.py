"""SQLite file with the content of a store image, for a store on disk that starts from it."""

from __future__ import annotations

from .memory import StoreImage
from .sqlite_file import DatabaseFile


def write_database(path: str, image: StoreImage) -> None:
    """Creates a database with all keys of an image and their revisions. Its history begins at the image's revision."""
    file = DatabaseFile(path)
    try:
        connection = file.writer
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(
            "INSERT INTO changes (revision, key, create_revision, previous, value) VALUES (?, ?, ?, 0, ?)",
            ((kv.mod_revision, kv.key, kv.create_revision, kv.value) for kv in image.values.values()),
        )
        held = {kv.mod_revision for kv in image.values.values()}
        connection.executemany(
            "INSERT OR IGNORE INTO expiries (at, revision) VALUES (?, ?)",
            ((at, revision) for at, revision, _ in image.expiries if revision in held),
        )
        connection.execute("UPDATE compaction SET revision = ?", (image.revision,))
        connection.execute("COMMIT")
    finally:
        file.close()
