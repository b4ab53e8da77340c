"""A store that is damaged behind its header: every command names the file or object, and exits with 4."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from kubist.errors import DamagedStore
from kubist.server.inprocess import Server
from tests.cli.backups import one_line
from tests.cli.processes import kubist, running
from tests.live import Live, Pki

PAGE = 4096
OBJECT = b'"name":"kube-system"'


@pytest.fixture(scope="module")
def whole(server_pki: Pki, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Database of a server that has ended."""
    directory = tmp_path_factory.mktemp("whole")
    with Live(server_pki, data_dir=str(directory)):
        pass
    return directory / "kubist.db"


def root(path: Path, name: str) -> int:
    """Offset of the first page of a table or index."""
    with closing(sqlite3.connect(path)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)).fetchone()
    return (int(page) - 1) * PAGE


def overwrite(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def spoil_log(path: Path) -> None:
    overwrite(path, root(path, "changes"), bytes(PAGE))


def spoil_index(path: Path) -> None:
    overwrite(path, root(path, "changes_by_key"), b"\xff" * PAGE)


def spoil_leaf(path: Path) -> None:
    overwrite(path, path.read_bytes().index(OBJECT) // PAGE * PAGE, b"\xff" * 8)


def empty_compaction(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM compaction")


def spoil_object(path: Path) -> None:
    overwrite(path, path.read_bytes().index(OBJECT), b"\xff" * len(OBJECT))


def spoil_key(path: Path) -> None:
    path.write_bytes(
        path.read_bytes().replace(
            b"/registry/namespaces/kube-system", b"/registry/namespaces/" + b"\xff" * 11
        )
    )


PLACES = [spoil_log, spoil_index, spoil_leaf, empty_compaction, spoil_object, spoil_key]


def copied(whole: Path, home: Path, spoil: Callable[[Path], None]) -> Path:
    """Data directory with a damaged copy of the database."""
    data = home / "data"
    data.mkdir()
    shutil.copy(whole, data)
    spoil(data / "kubist.db")
    return data


@pytest.mark.parametrize("spoil", PLACES)
def test_every_command_finds_the_damage(whole: Path, home: Path, spoil: Callable[[Path], None]) -> None:
    damaged = copied(whole, home, spoil)
    shutil.copy(damaged / "kubist.db", home / "copy")
    place = f"--data-dir={damaged}"
    port = ("--secure-port=0", "--bind-address=127.0.0.1")
    doctor = kubist("doctor", place, home=home)
    assert doctor.returncode == 4 and "To put a backup in its place" in doctor.stdout
    one_line(kubist("backup", place, f"--file={home / 'backup'}", home=home), "damaged", code=4)
    assert not (home / "backup").exists()
    for command in (
        ("serve", place, "--secure-port=0"),
        ("apiserver", place, f"--cert-dir={home}", *port),
        ("serve", "--in-memory", f"--snapshot={home / 'copy'}", "--secure-port=0"),
        ("restore", "--force", f"--data-dir={home / 'new'}", f"--file={home / 'copy'}"),
    ):
        result = kubist(*command, home=home)
        assert result.returncode == 4, result
        assert "Traceback" not in result.stderr
        assert result.stderr.splitlines()[-1].startswith("kubist: "), result.stderr


@pytest.mark.parametrize("flag", ["--workers=2", "--detach"])
@pytest.mark.parametrize("spoil", [spoil_leaf, spoil_object])
def test_other_processes_of_a_server_report_the_damage(
    whole: Path, home: Path, spoil: Callable[[Path], None], flag: str
) -> None:
    data = copied(whole, home, spoil)
    with running(home, "serve", f"--data-dir={data}", "--secure-port=0", flag) as server:
        assert server.process.wait(60) == 4, server.output
        assert "Traceback" not in server.output
        assert "damaged" in server.output.splitlines()[-1]


@pytest.mark.parametrize("spoil", [spoil_leaf, spoil_object])
def test_program_can_catch_the_damage(whole: Path, home: Path, spoil: Callable[[Path], None]) -> None:
    data = copied(whole, home, spoil)
    with pytest.raises(DamagedStore, match="damaged"), Server(data_dir=data):
        pass
