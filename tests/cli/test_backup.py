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
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubist.cli import backup as backups
from tests.cli.backups import back_up, content, one_line, restore
from tests.cli.processes import kubist, port_of, running
from tests.cli.test_store import names, value, write

READY = r"serves Kubernetes .* on (\S+)"


@pytest.fixture(params=[0, 0o022], ids=["umask-000", "umask-022"])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def kept(data: Path) -> list[Path]:
    return sorted(data.glob("before-restore-*"))


def modes(*paths: Path) -> set[int]:
    return {stat.S_IMODE(path.stat().st_mode) for path in paths}


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
        from kubist.storage.sqlite.store import SqliteStore

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


def test_backup_that_was_copied_into_place_is_a_store(home: Path, store: Path) -> None:
    """Its checksum does not count any more when a server has written to it."""
    back_up(home, store)
    (home / "new").mkdir()
    shutil.copyfile(home / "backup", home / "new" / "kubist.db")
    asyncio.run(write(home / "new", c=value("c")))
    assert kubist("doctor", "--data-dir=new", home=home).returncode == 0
    assert back_up(home, home / "new").returncode == 0


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


def test_backup_completes_while_a_server_writes(home: Path, store: Path) -> None:
    async def scenario() -> tuple[int, int]:
        from kubist.storage.sqlite.store import SqliteStore

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
