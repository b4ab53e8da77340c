"""Backups: complete, private, verified before they replace anything; the replaced store is kept."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import shutil
import sqlite3
import ssl
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubist.cli import backup as backups
from kubist.storage.content_digest import write_digest
from tests.cli.processes import kubist, port_of, running
from tests.cli.test_store import names, value, write

READY = r"serves Kubernetes .* on (\S+)"


@pytest.fixture(params=[0, 0o022], ids=["umask-000", "umask-022"])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.fixture
def store(home: Path) -> Path:
    """Data directory with keys and a store of two objects."""
    data = home / "data"
    (data / "pki").mkdir(parents=True)
    (data / "pki" / "ca.crt").write_text("certificate")
    (data / "pki" / "ca.key").write_text("key")
    asyncio.run(write(data, a=value("a"), b=value("b")))
    return data


def back_up(home: Path, data: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return kubist("backup", f"--data-dir={data}", f"--file={home / 'backup'}", *arguments, home=home)


def restore(home: Path, data: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return kubist("restore", f"--data-dir={data}", f"--file={home / 'backup'}", *arguments, home=home)


def kept(data: Path) -> list[Path]:
    return sorted(data.glob("before-restore-*"))


def content(directory: Path) -> dict[str, bytes]:
    """All files except those that SQLite creates when a store is read."""
    found = (path for path in directory.rglob("*") if path.is_file() and "kubist.db-" not in path.name)
    return {str(path): path.read_bytes() for path in found}


def modes(*paths: Path) -> set[int]:
    return {stat.S_IMODE(path.stat().st_mode) for path in paths}


def one_line(result: subprocess.CompletedProcess[str], *words: str, code: int = 1) -> None:
    assert result.returncode == code, result
    lines = result.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("kubist: "), result.stderr
    for word in words:
        assert word in lines[0]


def call(data: Path, method: str, path: str, token: str = "", body: Any = None) -> Any:
    """Request to a server of `serve` as administrator, or with a token."""
    pki = data / "pki"
    tls = ssl.create_default_context(cafile=str(pki / "ca.crt"))
    if not token:
        tls.load_cert_chain(pki / "admin.crt", pki / "admin.key")
    connection = http.client.HTTPSConnection("127.0.0.1", port_of(data / "kubeconfig"), context=tls)
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    connection.request(method, path, body=None if body is None else json.dumps(body), headers=headers)
    response = connection.getresponse()
    answer = json.loads(response.read())
    connection.close()
    return response.status, answer


def test_service_account_token_is_valid_after_a_restore_elsewhere(home: Path) -> None:
    data, other = home / "data", home / "other"
    with running(home, "serve", f"--data-dir={data}", "--secure-port=0") as server:
        server.wait_for(READY)
        call(data, "POST", "/api/v1/namespaces/default/serviceaccounts", body={"metadata": {"name": "robot"}})
        path = "/api/v1/namespaces/default/serviceaccounts/robot/token"
        code, answer = call(data, "POST", path, body={"spec": {}})
        assert code == 201
        token = answer["status"]["token"]
        assert back_up(home, data).returncode == 0
        call(data, "POST", "/api/v1/namespaces", body={"metadata": {"name": "later"}})
        assert server.stop() == 0
    assert restore(home, other).returncode == 0
    with running(home, "serve", f"--data-dir={other}", "--secure-port=0") as server:
        server.wait_for(READY)
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        code, answer = call(
            other, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", token=token, body=review
        )
        assert (code, answer["status"]["userInfo"]["username"]) == (
            201,
            "system:serviceaccount:default:robot",
        )
        assert call(other, "GET", "/api/v1/namespaces/later")[0] == 404
        assert server.stop() == 0
    assert (other / "pki/ca.key").read_bytes() == (data / "pki/ca.key").read_bytes()
    with contextlib.closing(sqlite3.connect(other / "kubist.db")) as database:
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert tables == {"changes", "expiries", "compaction"}
    assert (data / "pki/service-account.key").read_bytes() not in (other / "kubist.db").read_bytes()


@pytest.mark.usefixtures("umask")
def test_backup_and_restored_files_are_private(home: Path, store: Path) -> None:
    assert back_up(home, store).returncode == 0
    new = home / "new" / "deep"
    assert restore(home, new).returncode == 0
    assert modes(home / "backup", new / "kubist.db", new / "pki" / "ca.key") == {0o600}
    assert modes(home / "new", new, new / "pki") == {0o700}
    assert restore(home, new, "--force").returncode == 0
    (before,) = kept(new)
    assert modes(before, before / "pki") == {0o700}
    assert modes(before / "kubist.db", before / "pki" / "ca.key") == {0o600}


def test_existing_store_is_not_replaced_without_force(home: Path, store: Path) -> None:
    back_up(home, store)
    asyncio.run(write(store, c=value("c")))
    before = content(store)
    one_line(restore(home, store), f"{store}/kubist.db exists", "3 keys at revision", "--force")
    assert content(store) == before


@pytest.mark.parametrize(("answer", "code", "found"), [("y\n", 0, ["a", "b"]), ("n\n", 1, ["a", "b", "c"])])
def test_restore_asks_on_a_terminal(
    home: Path, store: Path, monkeypatch: pytest.MonkeyPatch, answer: str, code: int, found: list[str]
) -> None:
    back_up(home, store)
    asyncio.run(write(store, c=value("c")))
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda question: answer)
    assert restore(home, store).returncode == code
    assert asyncio.run(names(store)) == found


def test_replaced_store_and_keys_are_kept_each_time(home: Path, store: Path) -> None:
    back_up(home, store)
    asyncio.run(write(store, c=value("c")))
    (store / "pki" / "ca.key").write_text("another key")
    for _ in range(2):
        result = restore(home, store, "--force")
        assert result.returncode == 0
        assert str(kept(store)[-1]) in result.stdout
    first, second = kept(store)
    assert asyncio.run(names(store)) == ["a", "b"]
    assert (store / "pki" / "ca.key").read_text() == "key"
    assert asyncio.run(names(first)) == ["a", "b", "c"]
    assert (first / "pki" / "ca.key").read_text() == "another key"
    assert asyncio.run(names(second)) == ["a", "b"]


def leave_log(store: Path) -> None:
    """Leaves the store as a killed server does: the object c is only in the write-ahead log."""

    async def crash() -> dict[str, bytes]:
        from kubist.storage.sqlite import SqliteStore

        running = SqliteStore(str(store / "kubist.db"))
        await running.open()
        await running.create("/registry/configmaps/default/c", value("c"))
        found = {name: (store / name).read_bytes() for name in ("kubist.db", "kubist.db-wal")}
        await running.close()
        return found

    for name, left in asyncio.run(crash()).items():
        (store / name).write_bytes(left)


def test_leftover_write_ahead_log_does_not_affect_the_restored_store(home: Path, store: Path) -> None:
    back_up(home, store)
    leave_log(store)
    assert restore(home, store, "--force").returncode == 0
    assert asyncio.run(names(store)) == ["a", "b"]
    assert asyncio.run(names(kept(store)[0])) == ["a", "b", "c"]


def test_failed_restore_loses_nothing_of_a_leftover_write_ahead_log(
    home: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    back_up(home, store)
    leave_log(store)
    (store / "pki" / "ca.key").write_text("newer key")

    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(Path, "replace", fail)
    one_line(restore(home, store, "--force"), "Input/output error")
    monkeypatch.undo()
    assert asyncio.run(names(store)) == ["a", "b", "c"]
    assert (store / "pki" / "ca.key").read_text() == "newer key"
    assert not list(store.glob("**/.*.*"))


def test_damaged_store_is_replaced_and_kept(home: Path, store: Path) -> None:
    back_up(home, store)
    (store / "kubist.db").write_bytes(b"no database" * 1000)
    (store / "kubist.db-wal").write_bytes(b"log")
    one_line(restore(home, store), "it is damaged", "--force")
    assert restore(home, store, "--force").returncode == 0
    assert asyncio.run(names(store)) == ["a", "b"]
    (before,) = kept(store)
    assert (before / "kubist.db").read_bytes() == b"no database" * 1000
    assert (before / "kubist.db-wal").read_bytes() == b"log"


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
    command = f"kubist restore --data-dir {store} --file BACKUP"
    # For a file that is not a database, the doctor has nothing to add.
    more = (f"kubist doctor --data-dir {store}",) if spoil is not overwrite else ()
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
    )


def test_backup_that_was_copied_into_place_is_a_store(home: Path, store: Path) -> None:
    """Its checksum does not count any more when a server has written to it."""
    back_up(home, store)
    (home / "new").mkdir()
    shutil.copyfile(home / "backup", home / "new" / "kubist.db")
    asyncio.run(write(home / "new", c=value("c")))
    assert kubist("doctor", "--data-dir=new", home=home).returncode == 0
    assert back_up(home, home / "new").returncode == 0


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


def test_plain_copy_of_a_store_can_be_restored(home: Path, store: Path) -> None:
    shutil.copy(store / "kubist.db", home / "backup")
    (store / "pki" / "ca.key").write_text("mine")
    result = restore(home, store, "--force")
    assert result.returncode == 0 and "holds no keys" in result.stdout
    assert asyncio.run(names(store)) == ["a", "b"]
    assert (store / "pki" / "ca.key").read_text() == "mine"


def test_keys_without_a_store_are_not_replaced_without_force(home: Path, store: Path) -> None:
    back_up(home, store)
    other = home / "other"
    (other / "pki").mkdir(parents=True)
    (other / "pki" / "ca.key").write_text("mine")
    one_line(restore(home, other), f"keys in {other}/pki", "--force")
    assert restore(home, other, "--force").returncode == 0
    assert (kept(other)[0] / "pki" / "ca.key").read_text() == "mine"


def test_backup_replaces_only_a_backup(home: Path, store: Path) -> None:
    assert back_up(home, store).returncode == 0
    assert back_up(home, store).returncode == 0
    (home / "backup").write_text("notes")
    one_line(back_up(home, store), "is not a backup")
    assert (home / "backup").read_text() == "notes"
    one_line(
        kubist("backup", f"--data-dir={store}", f"--file={store}/kubist.db", home=home), "is the store itself"
    )
    one_line(kubist("backup", f"--data-dir={store}", f"--file={home}", home=home), "is a directory")
    one_line(
        kubist("restore", f"--data-dir={store}", f"--file={store}/kubist.db", "--force", home=home),
        "is the store itself",
    )


def test_failure_while_restoring_keeps_the_store(
    home: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    back_up(home, store)
    asyncio.run(write(store, c=value("c")))

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(backups, "_copy", fail)
    one_line(restore(home, store, "--force"), "No space left on device")
    assert asyncio.run(names(store)) == ["a", "b", "c"]
    assert not list(store.glob(".kubist.db.*"))


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


def test_backup_completes_while_a_server_writes(home: Path, store: Path) -> None:
    async def scenario() -> tuple[int, int]:
        from kubist.storage.sqlite import SqliteStore

        busy = SqliteStore(str(store / "kubist.db"))
        await busy.open()
        for number in range(300):
            await busy.create(f"/registry/configmaps/default/n{number}", value(f"n{number}") + b" " * 20_000)
        copying = asyncio.ensure_future(asyncio.to_thread(backups.back_up, store, home / "backup"))
        written = 0
        while not copying.done() and written < 5000:
            await busy.create(f"/registry/configmaps/default/w{written}", value(f"w{written}"))
            written += 1
        await copying
        await busy.close()
        return written, len(kept(store))

    written, _ = asyncio.run(scenario())
    assert 0 < written < 5000
    assert restore(home, home / "new").returncode == 0
    assert set(asyncio.run(names(home / "new"))) >= {"a", "b", *(f"n{number}" for number in range(300))}


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
        f"kubist restore --data-dir {data} --file BACKUP",
    )
