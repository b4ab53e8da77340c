"""`kubist backup`, `restore` and `doctor` on real database files."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kubist.cli import main
from kubist.storage.sqlite import SqliteStore


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
