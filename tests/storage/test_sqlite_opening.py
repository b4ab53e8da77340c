"""Opening a SQLite store: one owner, and clear errors for files that cannot be used."""

from __future__ import annotations

import asyncio
import os
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kubist.storage.sqlite import file as sqlite_file
from kubist.storage.sqlite.store import SqliteStore
from kubist.storage.store import OpenFailed

IN_USE = "{} is in use by another process: stop that server or choose another --data-dir"


RESTORE = "`kubist restore --data-dir {0} --file BACKUP` puts a backup in its place"


EXAMINE = "`kubist doctor --data-dir {0}` says more"


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "kubist.db")


async def error_of_opening(path: str) -> str:
    with pytest.raises(OpenFailed) as caught:
        await SqliteStore(path).open()
    message = str(caught.value)
    assert path in message and "\n" not in message
    return message


async def open_and_close(path: str) -> None:
    store = SqliteStore(path)
    await store.open()
    await store.close()


async def test_file_in_use_cannot_be_opened(path: str) -> None:
    store = SqliteStore(path)
    await store.open()
    assert await error_of_opening(path) == IN_USE.format(path)
    await store.close()
    await store.open()
    await store.close()


def test_file_in_use_by_another_process_cannot_be_opened(path: str) -> None:
    script = (
        "import asyncio, sys\n"
        "from kubist.storage.sqlite.store import SqliteStore\n"
        "asyncio.run(SqliteStore(sys.argv[1]).open())\n"
        "print('open', flush=True)\n"
        "sys.stdin.read()\n"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", script, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"open\n"
        assert asyncio.run(error_of_opening(path)) == IN_USE.format(path)
        owner.kill()
    asyncio.run(open_and_close(path))


def corrupt(path: Path) -> None:
    path.write_bytes(b"this is not a database, however long it may be read " * 100)


def damaged(path: Path) -> None:
    connection = sqlite3.connect(path)
    for statement in sqlite_file.SCHEMA.split(";"):
        connection.execute(statement)
    connection.commit()
    connection.close()
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"damage" * 4096)


def foreign(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE songs (title TEXT)")
    connection.close()


def newer(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.executescript(
        "CREATE TABLE changes (x); PRAGMA application_id = 0x4B756273; PRAGMA user_version = 99"
    )
    connection.close()


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (corrupt, f"file is not a database: the file is damaged. {RESTORE}"),
        (damaged, f"database disk image is malformed: the file is damaged. {EXAMINE}, {RESTORE}"),
        (foreign, "it is the database of another application: choose another --data-dir"),
        (newer, "it has the unknown schema version 99: use the version of Kubist that wrote it"),
        (Path.mkdir, "it is a directory: choose another --data-dir"),
        (lambda path: path.symlink_to(path), "Too many levels of symbolic links"),
    ],
    ids=["corrupt", "damaged", "foreign", "newer", "directory", "links-in-a-circle"],
)
async def test_foreign_file_is_rejected(path: str, spoil: Callable[[Path], None], reason: str) -> None:
    spoil(Path(path))
    directory = shlex.quote(str(Path(path).parent))
    assert await error_of_opening(path) == f"{path} cannot be opened: {reason.format(directory)}"


async def test_missing_directory_is_rejected(tmp_path: Path) -> None:
    path = str(tmp_path / "missing" / "kubist.db")
    assert await error_of_opening(path) == f"{path} cannot be opened: No such file or directory"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_unwritable_directory_is_rejected(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    path = str(tmp_path / "kubist.db")
    assert asyncio.run(error_of_opening(path)) == f"{path} cannot be opened: Permission denied"
