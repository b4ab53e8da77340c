"""Damaged backups and stores: nothing is replaced, and messages name the file, the problem and the next command."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from kubist.cli import backup as backups
from kubist.storage.backup.database_reading import write_digest
from tests.cli.backups import back_up, content, one_line, restore
from tests.cli.processes import kubist, running
from tests.cli.test_backup import READY
from tests.cli.test_store import names


def spoil_pages(path: Path) -> None:
    damaged = bytearray(path.read_bytes())
    damaged[4096 * 2 :] = b"\xff" * (len(damaged) - 4096 * 2)
    path.write_bytes(damaged)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def overwrite(path: Path) -> None:
    path.write_bytes(b"no database at all" * 500)


@pytest.mark.parametrize("spoil", [spoil_pages, truncate, empty, overwrite])
def test_unusable_backup_changes_nothing(home: Path, store: Path, spoil: Any) -> None:
    back_up(home, store)
    spoil(home / "backup")
    before = content(store)
    refused = restore(home, store, "--force")
    one_line(refused, str(home / "backup"), code=4)
    assert "***" not in refused.stderr, "the heading of SQLite's list of problems is no problem"
    assert content(store) == before


@pytest.mark.parametrize("spoil", [spoil_pages, truncate, overwrite])
def test_messages_for_a_damaged_store_name_the_file_and_the_next_command(
    home: Path, store: Path, spoil: Any
) -> None:
    shutil.rmtree(store / "pki")
    spoil(store / "kubist.db")
    command = f"kubist restore --data-dir {shlex.quote(str(store))} --file BACKUP"
    # For a file that is not a database, the doctor has nothing to add.
    more = (f"kubist doctor --data-dir {shlex.quote(str(store))}",) if spoil is not overwrite else ()
    doctor = kubist("doctor", f"--data-dir={store}", home=home)
    assert doctor.returncode == 4
    said = doctor.stdout + doctor.stderr
    assert f"{store}/kubist.db" in said and "damaged" in said and command in said
    one_line(
        kubist("serve", f"--data-dir={store}", "--secure-port=0", home=home),
        f"{store}/kubist.db",
        "damaged",
        *more,
        command,
        code=4,
    )
    one_line(back_up(home, store), f"{store}/kubist.db", "damaged", *more, code=4)
    assert not (home / "backup").exists()


@pytest.mark.parametrize("part", [b'"uid":', b"certificate"])
def test_changed_value_in_a_backup_is_found(home: Path, store: Path, part: bytes) -> None:
    """SQLite's own check does not see it."""
    back_up(home, store)
    content = (home / "backup").read_bytes()
    at = content.index(part)
    (home / "backup").write_bytes(content[:at] + b"\0" + content[at + 1 :])
    one_line(
        restore(home, home / "new"), "backup is damaged: its content does not match its checksum", code=4
    )
    assert not (home / "new").exists()
    one_line(
        kubist("serve", "--in-memory", "--secure-port=0", "--snapshot", str(home / "backup"), home=home),
        "its content does not match its checksum",
        code=4,
    )


def test_store_of_a_newer_version_is_not_called_damaged(home: Path, store: Path) -> None:
    back_up(home, store)
    with contextlib.closing(sqlite3.connect(store / "kubist.db")) as database:
        database.execute("PRAGMA user_version = 9")
    one_line(restore(home, store), "would be replaced (it cannot be read)", "--force")


def test_message_for_a_missing_store_names_its_flag(home: Path) -> None:
    doctor = kubist("doctor", "--data-dir=none", home=home)
    one_line(doctor, "none/kubist.db does not exist: check --data-dir")
    assert "--file" not in doctor.stderr
    one_line(restore(home, home / "new"), "backup does not exist: check --file")


def test_message_for_a_full_disk_names_the_file_that_is_written(
    home: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    back_up(home, store)

    def fill(_: sqlite3.Connection, target: sqlite3.Connection) -> None:
        target.execute("PRAGMA max_page_count = 1")
        target.execute("CREATE TABLE filled (x)")

    monkeypatch.setattr(backups, "_copy_database", fill)
    full = "cannot be written: No space left on device: free some space, then try again"
    one_line(back_up(home, store), f"{home / 'backup'} {full}")
    one_line(restore(home, store, "--force"), f"{store / 'kubist.db'} {full}")
    assert asyncio.run(names(store)) == ["a", "b"]


def test_backup_with_a_path_among_its_files_is_rejected(home: Path, store: Path) -> None:
    back_up(home, store)
    with sqlite3.connect(home / "backup") as database:
        database.execute("UPDATE backup_files SET name = '../evil' WHERE name = 'ca.key'")
        write_digest(database)
    database.close()
    one_line(restore(home, home / "new"), "'../evil'")
    assert not (home / "new").exists()


@pytest.mark.parametrize("name", ["ca.crt", "admin.key", "service-account.key"])
def test_message_for_a_damaged_key_names_the_file_and_the_next_command(home: Path, name: str) -> None:
    data = home / "data"
    with running(home, "serve", f"--data-dir={data}", "--secure-port=0") as server:
        server.wait_for(READY)
        server.stop()
    (data / "pki" / name).write_bytes(b"")
    one_line(
        kubist("serve", f"--data-dir={data}", "--secure-port=0", home=home),
        f"{data}/pki/{name} is damaged",
        f"kubist restore --data-dir {shlex.quote(str(data))} --file BACKUP",
    )
