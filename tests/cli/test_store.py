"""`kubist backup`, `restore` and `doctor` on real database files."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from kubist.cli import main
from kubist.storage.sqlite.store import SqliteStore


def value(name: str, uid: str = "") -> bytes:
    return f'{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"{name}","uid":"{uid}"}}}}'.encode()


async def write(directory: Path, **objects: bytes) -> None:
    store = SqliteStore(str(directory / "kubist.db"))
    await store.open()
    for name, content in objects.items():
        await store.create(f"/registry/configmaps/default/{name}", content)
    await store.close()


async def names(directory: Path) -> list[str]:
    store = SqliteStore(str(directory / "kubist.db"))
    await store.open()
    scan = await store.scan("/registry/")
    await store.close()
    return [kv.key.rpartition("/")[2] for kv in scan.items]


def test_restore_returns_to_the_state_of_the_backup(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    asyncio.run(write(tmp_path / "data", a=value("a"), b=value("b")))
    backup = str(tmp_path / "backup")
    assert main(["backup", "--data-dir", str(tmp_path / "data"), "--file", backup]) == 0
    asyncio.run(write(tmp_path / "data", c=value("c")))
    assert main(["restore", f"--data-dir={tmp_path / 'other'}", f"--file={backup}"]) == 0
    assert asyncio.run(names(tmp_path / "other")) == ["a", "b"]
    assert main(["restore", f"--data-dir={tmp_path / 'data'}", f"--file={backup}", "--force"]) == 0
    assert asyncio.run(names(tmp_path / "data")) == ["a", "b"]


def test_backup_works_while_a_server_uses_the_store(tmp_path: Path) -> None:
    async def scenario() -> int:
        store = SqliteStore(str(tmp_path / "kubist.db"))
        await store.open()
        await store.create("/registry/configmaps/default/a", value("a"))
        code = main(["backup", "--data-dir", str(tmp_path), "--file", str(tmp_path / "backup")])
        await store.create("/registry/configmaps/default/b", value("b"))
        await store.close()
        return code

    assert asyncio.run(scenario()) == 0
    assert main(["restore", "--data-dir", str(tmp_path / "new"), "--file", str(tmp_path / "backup")]) == 0
    assert asyncio.run(names(tmp_path / "new")) == ["a"]


def test_restore_under_a_running_server_is_rejected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data").mkdir()
    asyncio.run(write(tmp_path / "data", a=value("a")))
    backup = str(tmp_path / "backup")
    main(["backup", "--data-dir", str(tmp_path / "data"), "--file", backup])

    async def scenario() -> int:
        store = SqliteStore(str(tmp_path / "data" / "kubist.db"))
        await store.open()
        code = main(["restore", "--data-dir", str(tmp_path / "data"), "--file", backup])
        await store.close()
        return code

    assert asyncio.run(scenario()) == 6
    assert "in use by another process" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("objects", "complaint"),
    [
        ({"a": b"\xff"}, "a does not contain an object"),
        ({"a": value("b")}, "a holds an object named 'b'"),
        ({"a": value("a", "u"), "b": value("b", "u")}, "b has the uid of /registry/configmaps/default/a"),
    ],
)
def test_doctor_lists_problems(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], objects: dict[str, bytes], complaint: str
) -> None:
    asyncio.run(write(tmp_path, **objects))
    assert main(["doctor", "--data-dir", str(tmp_path)]) == 4
    assert complaint in capsys.readouterr().out


def test_doctor_finds_no_problems_in_a_good_store(tmp_path: Path) -> None:
    asyncio.run(write(tmp_path, a=value("a", "1"), b=value("b", "2")))
    assert main(["doctor", "--data-dir", str(tmp_path)]) == 0


@pytest.mark.parametrize("content", [None, b"no database", b""])
def test_file_that_is_not_a_store_prints_one_line_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None
) -> None:
    if content is not None:
        (tmp_path / "kubist.db").write_bytes(content)
    code = main(["doctor", "--data-dir", str(tmp_path)])
    assert code == (1 if content is None else 4)
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("command", ["doctor", "backup", "restore"])
def test_ctrl_c_is_not_reported_as_damage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """SQLite replaces the exception of its progress handler by an error."""
    asyncio.run(write(tmp_path, a=value("a", "1")))
    backup = ["--file", str(tmp_path / "backup")]
    assert main(["backup", "--data-dir", str(tmp_path), *backup]) == 0
    before = (tmp_path / "backup").read_bytes()
    capsys.readouterr()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kubist.cli.backup._INSTRUCTIONS", 1)
    monkeypatch.setattr("kubist.cli.progress.Progress.update", interrupt)
    place = tmp_path / "new" if command == "restore" else tmp_path
    rest = [] if command == "doctor" else backup
    assert main([command, "--data-dir", str(place), *rest]) == 130
    assert capsys.readouterr() == ("", "")
    assert (tmp_path / "backup").read_bytes() == before
    assert not list(tmp_path.glob(".*")), "no unfinished file is left"


def test_copy_in_steps_has_the_state_of_one_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server writes between the steps of a backup."""
    monkeypatch.setattr("kubist.cli.backup._PAGES", 1)
    (tmp_path / "data").mkdir()
    asyncio.run(write(tmp_path / "data", **{f"a{number}": value(f"a{number}") for number in range(200)}))
    writer = sqlite3.connect(tmp_path / "data" / "kubist.db")
    steps: list[int] = []

    def write_meanwhile(*_: object) -> None:
        steps.append(len(steps))
        key, content = f"/registry/configmaps/default/b{len(steps)}", value(f"b{len(steps)}")
        writer.execute(
            "INSERT INTO changes SELECT max(revision) + 1, ?, max(revision) + 1, 0, ? FROM changes",
            (key, content),
        )
        writer.commit()

    monkeypatch.setattr("kubist.cli.progress.Progress.update", write_meanwhile)
    monkeypatch.setattr("kubist.cli.backup._INSTRUCTIONS", 1 << 30)
    backup = str(tmp_path / "backup")
    assert main(["backup", "--data-dir", str(tmp_path / "data"), "--file", backup]) == 0
    writer.close()
    monkeypatch.undo()
    assert len(steps) > 10
    assert main(["restore", "--data-dir", str(tmp_path / "new"), "--file", backup]) == 0
    assert sorted(asyncio.run(names(tmp_path / "new"))) == sorted(f"a{number}" for number in range(200))
