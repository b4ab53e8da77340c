"""Backups of a data directory: one SQLite file with the store and the keys and certificates of `kubist
serve`.

A backup is a copy of the database with two additional tables: TABLE holds the files, the other the digest of the
content. A plain copy of the database is a backup without keys and without a digest.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

from kubist.base import files
from kubist.cli.progress import Progress, step
from kubist.storage.backup import snapshot_file
from kubist.storage.backup.database_reading import (
    DATABASE,
    all_damages,
    open_database,
    sealed_values,
    summary,
    write_digest,
)
from kubist.storage.sqlite.file import DIGEST_TABLE, take_lock
from kubist.storage.store import OpenFailed, StoreDamaged

KEYS = "pki"
SIDE_FILES = ("-wal", "-shm", "-journal")
TABLE = "backup_files"
_PAGES = 2000
"""Number of SQLite pages (4 KB) that are copied between two updates of the progress."""
_INSTRUCTIONS = 200_000
"""Number of SQLite virtual machine instructions between two updates: a few milliseconds."""


@contextmanager
def watched(label: str, connection: sqlite3.Connection) -> Iterator[Progress]:
    """Shows progress while the connection executes statements."""
    with step(label) as progress:
        connection.set_progress_handler(progress.update, _INSTRUCTIONS)
        try:
            yield progress
        finally:
            connection.set_progress_handler(None, 0)


@contextmanager
def _written(target: Path) -> Iterator[None]:
    """Names the target file in the error for a full disk, because SQLite's error names none."""
    try:
        yield
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_FULL:
            raise
        raise OpenFailed(
            f"{target} cannot be written: No space left on device: free some space, then try again"
        ) from None


def _copy_database(source: sqlite3.Connection, target: sqlite3.Connection) -> None:
    """Copies in steps, to show progress. The source is in one read transaction, so that the copy has the state of one
    moment even if a server writes meanwhile."""
    source.execute("BEGIN")
    try:
        source.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
        with step("Copying the store") as progress:
            source.backup(
                target,
                pages=_PAGES,
                progress=lambda _, left, total: progress.update(total - left, total, "pages"),
            )
    finally:
        source.rollback()


def back_up(directory: Path, target: Path) -> str:
    """Copies store, keys and certificates as of one moment. Returns a report.

    A server may run meanwhile. One read transaction covers the whole copy, so it neither blocks nor sees
    writers.
    """
    source = directory / DATABASE
    _check_target(target, source)
    with (
        open_database(source) as store,
        files.draft(target, durable=True) as temporary,
        _written(target),
        closing(sqlite3.connect(temporary)) as copy,
    ):
        _copy_database(store, copy)
        copy.execute("PRAGMA journal_mode = DELETE")
        keys = _read_keys(directory / KEYS)
        _write_table(copy, keys)
        with watched("Computing the checksum", copy):
            write_digest(copy)
        copy.commit()
        with watched("Checking the backup", copy):
            flaws = all_damages(copy)
            objects, revision = (0, 0) if flaws else summary(copy)
        if flaws:
            raise StoreDamaged(
                f"{source} is damaged: {flaws[0]}. No backup was made; "
                f"`kubist doctor --data-dir {shlex.quote(str(directory))}` says more"
            )
        sealed = sealed_values(copy)
    lines = [
        f"backed up {source} ({objects} keys at revision {revision}, {len(keys)} files of keys) to {target}"
    ]
    if not keys:
        lines.append(
            f"The backup holds no keys: there are none in {directory / KEYS}. Keep the files of the server's "
            "--service-account-* and --tls-* flags with it, or service account tokens fail after a restore."
        )
    if sealed:
        lines.append(
            f"{sealed} values are encrypted: keep the file of --encryption-provider-config elsewhere."
        )
    return "\n".join(lines)


def _check_target(target: Path, source: Path) -> None:
    """Raises ValueError if the target exists and is not a backup."""
    if target.is_dir():
        raise ValueError(f"{target} is a directory: --file must name a file")
    if not target.exists():
        return
    if source.exists() and target.samefile(source):
        raise ValueError(f"{target} is the store itself: choose another --file")
    try:
        with open_database(target):
            pass
    except OpenFailed:
        raise ValueError(f"{target} exists and is not a backup: choose another --file") from None


def _read_keys(directory: Path) -> dict[str, bytes]:
    """Keys and certificates by name. The lock keeps a starting server from changing them meanwhile."""
    if not directory.is_dir():
        return {}
    with files.locked(directory):
        paths = sorted(path for path in directory.iterdir() if path.is_file() and path.name[0] != ".")
        return {path.name: path.read_bytes() for path in paths}


def _write_table(copy: sqlite3.Connection, keys: dict[str, bytes]) -> None:
    copy.execute(f"DROP TABLE IF EXISTS {TABLE}")
    copy.execute(f"CREATE TABLE {TABLE} (name TEXT PRIMARY KEY, content BLOB NOT NULL)")
    copy.executemany(f"INSERT INTO {TABLE} VALUES (?, ?)", keys.items())


def _table(backup: sqlite3.Connection) -> dict[str, bytes]:
    """Keys and certificates in a backup; empty in a plain copy of a store."""
    if not backup.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (TABLE,)).fetchone():
        return {}
    keys = dict(backup.execute(f"SELECT name, content FROM {TABLE}"))
    for name in keys:
        if name != os.path.basename(name) or name in ("", ".", ".."):
            raise OpenFailed(f"the backup holds a file with the name {name!r}: it was not made by Kubist")
    return keys


def restore(source: Path, directory: Path, confirm: Callable[[str], None]) -> str:
    """Replaces the store and its keys by a backup. Returns a report.

    The backup is verified and copied before anything changes. The old store and keys are kept. The new store
    takes its place in one step. `confirm` raises ValueError if the user does not want an existing store
    replaced.
    """
    path, pki = directory / DATABASE, directory / KEYS
    if path.exists() and source.exists() and source.samefile(path):
        raise ValueError(f"{source} is the store itself: choose another --file")
    with open_database(source) as backup:
        with watched("Checking the backup", backup):
            flaws = all_damages(backup)
            objects, revision = (0, 0) if flaws else summary(backup)
        if flaws:
            raise StoreDamaged(f"{source} is damaged: {flaws[0]}. Nothing was changed; choose another --file")
        keys = _table(backup)
        files.make_directory(directory)
        lock = take_lock(str(path))
        try:
            replaced = [pki / name for name in keys if (pki / name).exists()]
            if path.exists():
                confirm(f"{path} exists and would be replaced ({_describe(path)}).")
            elif any(file.read_bytes() != keys[file.name] for file in replaced):
                confirm(f"The keys in {pki} would be replaced.")
            with files.draft(path, durable=True) as temporary:
                with _written(path), closing(sqlite3.connect(temporary)) as copy:
                    _copy_database(backup, copy)
                    copy.execute("PRAGMA journal_mode = DELETE")
                    copy.execute("PRAGMA secure_delete = ON")
                    for table in (TABLE, snapshot_file.TABLE, DIGEST_TABLE):
                        copy.execute(f"DROP TABLE IF EXISTS {table}")
                    copy.commit()
                with ExitStack() as drafts:  # so that a full disk is noticed before anything changes
                    for name, content in keys.items():
                        draft = drafts.enter_context(files.draft(pki / name, durable=True))
                        draft.write_bytes(content)
                    kept = _keep(directory, path, replaced)
        finally:
            os.close(lock)
    lines = [
        f"restored {path} ({objects} keys at revision {revision}, {len(keys)} files of keys) from {source}"
    ]
    if kept is not None:
        lines.append(f"The old store and keys are in {kept}")
    if not keys:
        lines.append(
            "The backup holds no keys: service account tokens are valid only if the server has the keys that it "
            "had when they were issued."
        )
    return "\n".join(lines)


def _describe(path: Path) -> str:
    try:
        with open_database(path) as store:
            return "{} keys at revision {}".format(*summary(store))
    except StoreDamaged:
        return "it is damaged"
    except OpenFailed:
        return "it cannot be read"


def _keep(directory: Path, path: Path, keys: list[Path]) -> Path | None:
    """Keeps the old store and keys in a new directory. Returns its path, or None if there is nothing to keep.
    The old database stays in place, without side files that SQLite would apply to the new database. It is complete
    without them, so that nothing is lost if the restore fails later."""
    if not path.exists() and not keys:
        return None
    if path.exists():
        _merge_side_files(path)
    kept = _new_directory(directory, "before-restore-" + time.strftime("%Y-%m-%dT%H-%M-%S", time.gmtime()))
    if path.exists():
        _copy(path, kept / path.name)
    for side in SIDE_FILES:
        beside = path.with_name(path.name + side)
        if beside.exists():
            _copy(beside, kept / beside.name)
            beside.unlink()
    for key in keys:
        files.make_directory(kept / KEYS)
        _copy(key, kept / KEYS / key.name)
    return kept


def _merge_side_files(path: Path) -> None:
    """Writes the changes in the side files of a killed server to the database. A damaged database stays as it is."""
    with suppress(OpenFailed, sqlite3.Error):
        with open_database(path):
            pass  # SQLite would delete the side files of a file that is not a database.
        with closing(sqlite3.connect(path)) as store:
            store.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _new_directory(parent: Path, name: str) -> Path:
    """Creates a directory that did not exist before."""
    number = 1
    while True:
        path = parent / (name if number == 1 else f"{name}-{number}")
        try:
            path.mkdir(files.DIRECTORY_MODE)
        except FileExistsError:
            number += 1
        else:
            return path


def _copy(source: Path, target: Path) -> None:
    """Hard-links a file, or copies it if the file system has no links."""
    try:
        os.link(source, target)
    except OSError:
        with source.open("rb") as old, open(files.create(target), "wb") as new:
            shutil.copyfileobj(old, new)
            os.fsync(new.fileno())
