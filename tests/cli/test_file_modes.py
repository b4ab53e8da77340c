"""File modes: only the owner can access files that Kubist creates, under any umask."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubist.api.config import Config
from kubist.base import files
from kubist.server.clusters import credentials
from kubist.server.inprocess import Server
from kubist.server.runtime import pki
from kubist.storage.sqlite.file import DatabaseFile
from tests.cli.processes import kubist, running


@pytest.fixture(params=[0, 0o022], ids=["umask-000", "umask-022"], autouse=True)
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def modes(directory: Path) -> dict[str, str]:
    """Modes of all files below a directory, by name."""
    return {str(path.relative_to(directory)): oct(mode(path)) for path in directory.rglob("*")}


def check_private(directory: Path) -> None:
    """Fails if other users can access `directory` or anything in it."""
    wrong = {}
    for path in (directory, *directory.rglob("*")):
        found = path.lstat().st_mode
        wanted = 0o700 if stat.S_ISDIR(found) else 0o600
        if stat.S_IMODE(found) != wanted:
            wrong[str(path)] = oct(found)
    assert wrong == {}


@pytest.mark.parametrize("workers", ["1", "2"])
def test_data_directory_of_serve_is_private(home: Path, workers: str, temporary: Path) -> None:
    data = home / "new" / "deep" / "data"
    arguments = ("--data-dir", str(data), "--secure-port", "0", "--workers", workers)
    with running(home, "serve", *arguments, "--kubeconfig", str(home / "made" / "config")) as server:
        server.wait_for(r"serves Kubernetes .* on (\S+)")
        check_private(home / "new")
        check_private(home / "made")
        names = {path.name for path in data.iterdir()}
        assert {"kubist.db", "kubist.db-wal", "kubist.db-shm", "kubist.db.lock", "pki"} <= names
        for made in temporary.iterdir():
            check_private(made)
        sockets = [path for path in temporary.rglob("*") if path.is_socket()]
        assert len(sockets) == (4 if workers == "2" else 0)
        assert server.stop() == 0
    check_private(home / "new")


@pytest.mark.parametrize("workers", ["1", "2"])
def test_temporary_files_of_a_server_in_memory_are_private(home: Path, workers: str, temporary: Path) -> None:
    with running(home, "serve", "--in-memory", "--secure-port=0", "--workers", workers) as server:
        server.wait_for(r"serves Kubernetes .* on (\S+)")
        made = list(temporary.iterdir())
        assert len(made) == int(workers)
        for directory in made:
            check_private(directory)
        assert list(temporary.glob("*/kubeconfig"))
        server.stop()
    assert list(temporary.iterdir()) == []


def test_files_of_an_apiserver_are_private(home: Path) -> None:
    (home / "policy.yaml").write_text(
        "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Metadata}]}"
    )
    made = home / "made"
    flags = {
        "data-dir": made / "data",
        "cert-dir": made / "certificates",
        "audit-log-path": made / "logs" / "audit.log",
        "audit-policy-file": home / "policy.yaml",
        "secure-port": 0,
        "v": 1,
    }
    with running(home, "apiserver", *(f"--{name}={value}" for name, value in flags.items())) as server:
        server.wait_for(r"serving on (\S+)")
        check_private(made)
        assert {path.name for path in made.iterdir()} == {"data", "certificates", "logs"}
        server.stop()


def test_files_of_an_embedded_server_are_private(home: Path) -> None:
    data = home / "data"
    with Server(data_dir=str(data)) as server:
        assert server.kubeconfig.exists()
        check_private(data)
        assert "tokens.csv" in modes(data)


def test_world_readable_store_is_tightened_on_open(home: Path) -> None:
    path = home / "kubist.db"
    names = [path, home / "kubist.db-wal", home / "kubist.db-shm"]
    database = DatabaseFile(str(path))
    for name in names:
        name.chmod(0o644)
    crashed = {name: name.read_bytes() for name in names}
    database.close()
    for name, content in crashed.items():
        name.write_bytes(content)
        name.chmod(0o644)
    database = DatabaseFile(str(path))
    assert [oct(mode(name)) for name in names] == ["0o600"] * 3
    database.close()


def test_world_readable_keys_are_tightened_at_the_start(home: Path) -> None:
    config = pki.prepare(Config(), home, in_memory=False)
    keys = sorted((home / "pki").glob("*.key"))
    credentials.make(home / "pki")
    others = sorted((home / "pki" / "pki").iterdir())
    for path in (*keys, *others):
        path.chmod(0o644)
    assert pki.prepare(config, home, in_memory=False).tls_private_key_file == config.tls_private_key_file
    credentials.read_token(home / "pki")
    assert [oct(mode(path)) for path in (*keys, *others)] == ["0o600"] * 14


def test_database_behind_a_dangling_link_is_private(home: Path) -> None:
    (home / "kubist.db").symlink_to(home / "elsewhere.db")
    DatabaseFile(str(home / "kubist.db")).close()
    assert mode(home / "elsewhere.db") == 0o600


def test_existing_directory_keeps_its_mode(home: Path) -> None:
    data = home / "data"
    data.mkdir()
    data.chmod(0o755)
    files.make_directory(data)
    DatabaseFile(str(data / "kubist.db")).close()
    assert mode(data) == 0o755
    assert mode(data / "kubist.db") == 0o600


def test_merged_kubeconfig_is_private_and_stays_behind_its_link(home: Path) -> None:
    real = home / "dotfiles" / "config"
    real.parent.mkdir()
    real.write_text("")
    (home / ".kube").mkdir()
    (home / ".kube" / "config").symlink_to(real)
    data = home / "data"
    data.mkdir()
    with running(home, "serve", "--data-dir", str(data), "--secure-port", "0") as server:
        server.wait_for(r"serves Kubernetes .* on (\S+)")
        assert kubist("kubeconfig", "--data-dir", str(data), "--merge", home=home).returncode == 0
        server.stop()
    assert (home / ".kube" / "config").is_symlink()
    assert mode(real) == 0o600
    assert "current-context: kubist" in real.read_text()


def test_planted_temporary_file_is_not_written_through(home: Path) -> None:
    """A file that another user put under a guessed name must not receive the content."""
    target = home / "kubeconfig"
    planted = home / f".kubeconfig.{os.getpid()}"
    planted.symlink_to(home / "theirs")
    files.write(target, b"secret")
    assert target.read_bytes() == b"secret"
    assert not (home / "theirs").exists() and planted.is_symlink()


def test_failed_write_keeps_the_file_and_leaves_no_draft(home: Path) -> None:
    target = home / "kubeconfig"
    files.write(target, b"old")
    with contextlib.suppress(OSError), files.draft(target) as path:
        path.write_bytes(b"half")
        raise OSError("full")
    assert target.read_bytes() == b"old"
    assert list(home.iterdir()) == [target]


def test_file_is_not_created_over_a_socket(home: Path) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(home / "taken"))
        with pytest.raises(FileExistsError):
            files.create(home / "taken")
