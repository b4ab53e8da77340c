"""Rotated audit logs are compressed, and no line is lost."""

from __future__ import annotations

import gzip
import multiprocessing
import os
import stat
from pathlib import Path

from kubist.api.filters.audit.file import AuditFile
from tests.waiting import wait_for

WRITERS, LINES, SIZE = 3, 150, 1000


def backups(directory: Path, suffix: str) -> list[Path]:
    return sorted(
        path for path in directory.iterdir() if path.name.startswith("audit-") and path.suffix == suffix
    )


def is_compressed(directory: Path) -> bool:
    return not backups(directory, ".log")


def content(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def write(path: Path, number: int) -> None:
    file = AuditFile(path, max_size=20 * SIZE, compress=True)
    for line in range(LINES):
        file.write(f"{number}-{line}".encode().ljust(SIZE - 1, b".") + b"\n")
    file.close()


def test_rotated_log_is_compressed_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.touch(0o640)
    path.chmod(0o640)
    file = AuditFile(path, max_size=10, compress=True)
    for line in (b"first...\n", b"second..\n"):
        file.write(line)
    wait_for(lambda: is_compressed(tmp_path) and len(backups(tmp_path, ".gz")) == 1)
    file.close()
    (backup,) = backups(tmp_path, ".gz")
    assert content(backup) == b"first...\n"
    assert stat.S_IMODE(backup.stat().st_mode) == 0o640
    assert path.read_bytes() == b"second..\n"


def test_writers_of_one_file_lose_no_line(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    processes = [
        multiprocessing.get_context("spawn").Process(target=write, args=(path, number))
        for number in range(WRITERS)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * WRITERS
    last = AuditFile(path, compress=True)  # Compresses backups that the writers left at their end.
    wait_for(lambda: is_compressed(tmp_path), 30)
    last.close()
    lines = b"".join(map(content, tmp_path.iterdir())).decode().splitlines()
    expected = sorted(f"{number}-{line}" for number in range(WRITERS) for line in range(LINES))
    assert sorted(line.rstrip(".") for line in lines) == expected


def test_interrupted_compression_is_repeated_at_start(tmp_path: Path) -> None:
    (tmp_path / "audit-2026-11-16T08-00-00.000.log").write_bytes(b"line\n")
    (tmp_path / "audit-2026-11-16T08-00-00.000.log.gz").write_bytes(b"half")
    file = AuditFile(tmp_path / "audit.log", compress=True)
    wait_for(lambda: is_compressed(tmp_path))
    file.close()
    (backup,) = backups(tmp_path, ".gz")
    assert content(backup) == b"line\n"


def test_name_reserved_for_a_rotation_is_not_compressed(tmp_path: Path) -> None:
    """A compression that found the empty file under this name would delete the log that is moved there."""
    (tmp_path / "audit-2026-11-16T08-00-00.000.log").write_bytes(b"line\n")
    reserved = tmp_path / "audit-2026-11-16T09-00-00.000.log"
    reserved.touch()
    file = AuditFile(tmp_path / "audit.log", compress=True)
    wait_for(lambda: backups(tmp_path, ".log") == [reserved])
    file.close()
    assert [path.name for path in backups(tmp_path, ".gz")] == ["audit-2026-11-16T08-00-00.000.log.gz"]


def test_limits_count_a_compressed_backup_once(tmp_path: Path) -> None:
    names = ["audit-2020-01-01T00-00-00.000.log", "audit-2021-01-01T00-00-00.000.log"]
    for name in names:
        for suffix in ("", ".gz"):
            (tmp_path / f"{name}{suffix}").write_bytes(b"")
    file = AuditFile(tmp_path / "audit.log", max_size=10, max_backup=2)
    for _ in range(2):
        file.write(b"123456789\n")
    file.close()
    held = sorted(os.listdir(tmp_path))
    assert held[0] == names[1] and held[1] == f"{names[1]}.gz" and len(held) == 4
