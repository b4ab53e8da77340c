"""Full, read-only and broken disks, and a file locked by another process.

Writes fail with a clear message; reads and watches continue. When the problem is solved, writes continue
without a restart and without data loss.
"""

from __future__ import annotations

import contextlib
import errno
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from kubist.cli import status
from kubist.cli.instance import Record
from kubist.server.inprocess import Server
from kubist.storage.sqlite import writer as sqlite_writer
from tests import programs
from tests.cli.processes import kubist, running
from tests.cli.test_serve import READY
from tests.live import Answer, Client, Live, Pki, configmap, seen

from . import faults

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def disk(server_pki: Pki, data: Path) -> Iterator[Live]:
    with Live(server_pki, data_dir=str(data)) as running_:
        yield running_


def create(client: Client, name: str) -> Answer:
    return client.ask("POST", MAPS, configmap(name))


def check_rejected(answer: Answer, why: str) -> None:
    assert answer.status == 503, answer
    assert answer.headers["Retry-After"] == "1"
    assert answer.json["reason"] == "ServiceUnavailable"
    assert why in answer.json["message"]


def check_unready(client: Client, why: str) -> None:
    answer = client.ask("GET", "/readyz")
    assert answer.status == 500
    assert re.findall(rb"^\[-\](\S+)", answer.body, re.MULTILINE) == [b"etcd-readiness"]
    reason = client.ask("GET", "/readyz/etcd-readiness")
    assert reason.status == 500 and why in reason.body.decode()


def names(client: Client) -> list[str]:
    return [item["metadata"]["name"] for item in client.get(MAPS)["items"] if item["metadata"]["name"] < "k"]


def goes_through(live: Live, trouble: AbstractContextManager[object], why: str) -> None:
    client = live.client
    first = client.post(MAPS, configmap("a"))
    assert client.ask("GET", "/readyz").body == b"ok"
    with client.watch(f"{MAPS}?resourceVersion={first['metadata']['resourceVersion']}") as watch:
        with trouble:
            check_rejected(create(client, "b"), why)
            check_unready(client, why)
            check_rejected(
                client.ask("PATCH", f"{MAPS}/a", {"data": {"x": "y"}}, "application/merge-patch+json"), why
            )
            check_rejected(client.ask("DELETE", f"{MAPS}/a"), why)
            assert client.get(f"{MAPS}/a") == first
            assert names(client) == ["a"]
            for path in ("/livez", "/healthz", "/readyz?exclude=etcd-readiness"):
                assert client.ask("GET", path).status == 200
        assert client.ask("GET", "/readyz").body == b"ok", "without a write of a client"
        for name in ("c", "d"):
            client.post(MAPS, configmap(name))
        client.delete(f"{MAPS}/a")
        assert [event[:2] for event in map(seen, watch.take(3))] == [
            ("ADDED", "c"),
            ("ADDED", "d"),
            ("DELETED", "a"),
        ]


@pytest.mark.skipif(not faults.possible(), reason="SQLite's system calls cannot be replaced here")
@pytest.mark.parametrize(
    ("number", "why"),
    [
        (errno.ENOSPC, "database or disk is full"),
        (errno.EROFS, "disk I/O error"),
        (errno.EIO, "disk I/O error"),
    ],
)
def test_failing_disk_writes_are_503_until_the_disk_recovers(
    disk: Live, data: Path, server_pki: Pki, number: int, why: str
) -> None:
    goes_through(disk, faults.failing_writes(number), why)
    disk.client.post(MAPS, configmap("e"))
    with Live(server_pki, data_dir=str(self_copy(data))) as again:
        assert names(again.client) == ["c", "d", "e"], (
            "what was acknowledged is in the file, and nothing else"
        )


@pytest.mark.skipif(not faults.possible(), reason="SQLite's system calls cannot be replaced here")
def test_full_disk_is_noticed_without_a_write_of_a_client(
    disk: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_writer, "CHECKED_SECONDS", 0.0)
    assert disk.client.ask("GET", "/readyz").status == 200
    with faults.failing_writes(errno.ENOSPC):
        check_unready(disk.client, "database or disk is full")
    assert disk.client.ask("GET", "/readyz").status == 200


def test_checks_after_a_write_do_not_write(disk: Live, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anonymous clients may read /readyz, and must not be able to keep the disk busy."""
    monkeypatch.setattr(sqlite_writer, "CHECKED_SECONDS", 3600.0)
    create(disk.client, "a")
    log = data / "kubist.db-wal"
    size = log.stat().st_size
    assert [disk.client.ask("GET", "/readyz").status for _ in range(5)] == [200] * 5
    assert log.stat().st_size == size


@pytest.mark.skipif(not faults.possible(), reason="SQLite's system calls cannot be replaced here")
def test_status_names_the_full_disk(tmp_path: Path) -> None:
    with Server(data_dir=tmp_path) as server:
        record = Record(0, server.url, 0.0, "", "", in_memory=False, detached=False, etcd_servers=())
        assert status.health_of(tmp_path, record)["health"] == "ready"
        with faults.failing_writes(errno.ENOSPC), pytest.MonkeyPatch.context() as patched:
            patched.setattr(sqlite_writer, "CHECKED_SECONDS", 0.0)
            found = status.health_of(tmp_path, record)
        assert found == {
            "ready": False,
            "health": f"not ready: etcd-readiness ({tmp_path}/kubist.db is not available: database or disk is full)",
        }
        assert status.health_of(tmp_path, record)["health"] == "ready"


def self_copy(data: Path) -> Path:
    """Copy of the files as another process would find them if this one were killed now."""
    copy = data.with_name("copy")
    shutil.copytree(data, copy)
    return copy


@contextlib.contextmanager
def commits_that_fail(live: Live, monkeypatch: pytest.MonkeyPatch, *, in_fact: bool) -> Iterator[None]:
    """Makes COMMIT fail as if the disk could not be flushed. The written data may or may not be in the file."""
    from kubist.storage.sqlite import commit as sqlite_commit

    def commit(connection: sqlite3.Connection) -> sqlite3.Error:
        if not in_fact:
            connection.execute("COMMIT")
        return sqlite3.OperationalError("disk I/O error")

    with monkeypatch.context() as patched:
        patched.setattr(sqlite_commit, "commit", commit)
        yield


def test_failed_flush_is_503_and_writes_nothing(disk: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    goes_through(disk, commits_that_fail(disk, monkeypatch, in_fact=True), "disk I/O error")


def test_change_that_took_effect_despite_a_failed_commit_is_visible(
    disk: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = disk.client
    first = client.post(MAPS, configmap("a"))
    with client.watch(f"{MAPS}?resourceVersion={first['metadata']['resourceVersion']}") as watch:
        with commits_that_fail(disk, monkeypatch, in_fact=False):
            check_rejected(create(client, "b"), "disk I/O error")
        client.post(MAPS, configmap("c"))
        assert [event[:2] for event in map(seen, watch.take(2))] == [("ADDED", "b"), ("ADDED", "c")]
        assert names(client) == ["a", "b", "c"]


@contextlib.contextmanager
def held(file: Path) -> Iterator[None]:
    """Another process that has a transaction open."""
    script = (
        "import sqlite3, sys\n"
        "c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "c.execute('BEGIN IMMEDIATE')\n"
        "print('held', flush=True)\n"
        "sys.stdin.read()\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", script, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdin is not None and holder.stdout is not None
    try:
        assert holder.stdout.readline() == b"held\n"
        yield
    finally:
        holder.stdin.close()
        holder.wait(10)
        holder.stdout.close()


def test_writes_wait_for_a_briefly_locked_file(disk: Live, data: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor() as threads:
        with held(data / "kubist.db"):
            waiting = threads.submit(create, disk.client, "a")
            began = time.monotonic()
            assert disk.client.get("/api/v1/namespaces/default")["metadata"]["name"] == "default"
            assert time.monotonic() - began < 4.5, "reads do not wait"
            time.sleep(0.2)
            assert not waiting.done()
        assert waiting.result(10).status == 201


def test_writes_to_a_file_locked_for_long_are_503(
    disk: Live, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_writer, "BUSY_SECONDS", 0.3)
    goes_through(disk, held(data / "kubist.db"), "database is locked")


@contextlib.contextmanager
def small_disk(where: Path) -> Iterator[Path]:
    """Real file system of 2 MB."""
    where.mkdir()
    mount = programs.path_of("mount")
    options = ["-t", "tmpfs", "-o", "size=2m", "kubist-test", str(where)]
    if subprocess.run([mount, *options], capture_output=True, check=False).returncode:
        pytest.skip("file systems cannot be mounted here")
    try:
        yield where
    finally:
        subprocess.run(["umount", "--lazy", str(where)], check=True)


@contextlib.contextmanager
def filled(where: Path) -> Iterator[None]:
    ballast = where / "ballast"
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
    yield
    ballast.unlink()


def test_full_disk_of_a_real_file_system_is_503_and_recovers(server_pki: Pki, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as where, Live(server_pki, data_dir=str(where / "data")) as live:
        live.client.post("/api/v1/namespaces/default/secrets", {"metadata": {"name": "before"}})
        goes_through_when_full(live, where)


def goes_through_when_full(live: Live, where: Path) -> None:
    client = live.client
    with filled(where):
        made = []
        for number in range(400):  # the log may have room for some
            answer = client.ask("POST", MAPS, configmap(f"b{number}", pad="x" * 4000))
            if answer.status != 201:
                break
            made.append(f"b{number}")
        check_rejected(answer, "is not available")
        check_unready(client, "is not available")
        assert sorted(names(client)) == sorted(made)
    assert create(client, "c").status == 201
    assert sorted(names(client)) == sorted([*made, "c"])


@pytest.mark.parametrize("flags", [(), ("--workers=2",)])
def test_status_of_a_command_names_the_full_disk(tmp_path: Path, flags: tuple[str, ...]) -> None:
    with small_disk(tmp_path / "disk") as where:
        place = f"--data-dir={where}"
        with running(tmp_path, "serve", place, "--secure-port=0", *flags) as server:
            server.wait_for(READY)
            assert kubist("status", place, home=tmp_path).returncode == 0
            with filled(where):
                result = kubist("status", place, home=tmp_path)
                assert result.returncode == 1
                assert "not ready: etcd-readiness" in result.stdout and "disk is full" in result.stdout
            assert kubist("status", place, home=tmp_path).returncode == 0


def test_read_only_disk_prints_one_line_error_at_start(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as where:
        subprocess.run(["mount", "-o", "remount,ro", str(where)], check=True)
        arguments = ("apiserver", "--secure-port=0", "--bind-address=127.0.0.1", "--cert-dir=certs")
        with running(tmp_path, *arguments, f"--data-dir={where}") as server:
            assert server.process.wait(60) == 1
            line = server.output.strip().splitlines()[-1]
        assert line == f"kubist: --data-dir: {where}/kubist.db cannot be opened: Read-only file system"
