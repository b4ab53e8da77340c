"""File of an audit log: rotation under several writers, pruning, file modes."""

from __future__ import annotations

import errno
import fcntl
import multiprocessing
import os
import shutil
import stat
import threading
import time
from collections.abc import Iterator
from multiprocessing.synchronize import Barrier
from pathlib import Path
from unittest import mock

import pytest

from kubist.api.filters.audit.file import AuditFile
from kubist.base import files

WRITERS, LINES, SIZE = 4, 200, 1000
MOMENT = 1_794_816_000.25


def _write(path: Path, number: int, max_size: int) -> None:
    file = AuditFile(path, max_size=max_size)
    for line in range(LINES):
        file.write(f"{number}-{line}".encode().ljust(SIZE - 1, b".") + b"\n")
    file.close()


def _write_at_once(barrier: Barrier, path: Path, number: int) -> None:
    """Writes in a process of its own, in which the clock is stopped, when all writers have started."""
    with mock.patch.object(time, "time", return_value=MOMENT):
        barrier.wait(60)
        _write(path, number, 10 * SIZE)


def _lines(directory: Path) -> list[str]:
    return sorted(line.rstrip(".") for file in directory.iterdir() for line in file.read_text().splitlines())


EVERY_LINE = sorted(f"{number}-{line}" for number in range(WRITERS) for line in range(LINES))


def _rotated(directory: Path) -> list[Path]:
    return sorted(directory.glob("audit-*.log"))


@pytest.fixture
def stopped_clock(monkeypatch: pytest.MonkeyPatch) -> float:
    """All rotations happen in the same millisecond."""
    monkeypatch.setattr(time, "time", lambda: MOMENT)
    return MOMENT


@pytest.fixture(params=[0, 0o022, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_writers_of_one_file_lose_no_line_when_one_of_them_rotates_it(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    threads = [threading.Thread(target=_write, args=(path, number, 100 * SIZE)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    files = list(tmp_path.iterdir())
    assert _lines(tmp_path) == EVERY_LINE
    assert len(files) >= WRITERS * LINES // 100
    assert all(file.stat().st_size <= (100 + WRITERS) * SIZE for file in files)


def test_rotations_in_one_millisecond_lose_no_line(tmp_path: Path, stopped_clock: float) -> None:
    _write(tmp_path / "audit.log", 0, 10 * SIZE)
    assert _lines(tmp_path) == sorted(f"0-{line}" for line in range(LINES))
    names = [path.name for path in _rotated(tmp_path)]
    assert len(names) == LINES // 10 - 1
    assert names[:2] == ["audit-2026-11-16T08-00-00.250.log", "audit-2026-11-16T08-00-00.251.log"]


def test_processes_that_rotate_in_one_millisecond_lose_no_line(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    barrier, path = context.Barrier(WRITERS), tmp_path / "audit.log"
    processes = [
        context.Process(target=_write_at_once, args=(barrier, path, number)) for number in range(WRITERS)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * WRITERS
    assert _lines(tmp_path) == EVERY_LINE


def test_rotation_does_not_overwrite_a_file_of_another_program(tmp_path: Path, stopped_clock: float) -> None:
    other = tmp_path / "audit-2026-11-16T08-00-00.250.log"
    other.write_text("precious")
    _write(tmp_path / "audit.log", 0, 100 * SIZE)
    assert other.read_text() == "precious"
    assert (tmp_path / "audit-2026-11-16T08-00-00.251.log").exists()


def test_newest_backups_are_kept_even_of_one_millisecond(tmp_path: Path, stopped_clock: float) -> None:
    file = AuditFile(tmp_path / "audit.log", max_size=10, max_backup=3)
    for number in range(10):
        file.write(f"line {number:4}\n".encode())
    file.close()
    assert [path.read_text() for path in _rotated(tmp_path)] == ["line    6\n", "line    7\n", "line    8\n"]


def test_backups_past_their_age_are_removed(tmp_path: Path) -> None:
    file = AuditFile(tmp_path / "audit.log", max_size=10, max_age=2)
    file.write(b"line    0\n")
    file.write(b"line    1\n")
    (old,) = _rotated(tmp_path)
    long_ago = time.time() - 3 * 86400
    os.utime(old, (long_ago, long_ago))
    file.write(b"line    2\n")
    file.close()
    assert [path.read_text() for path in _rotated(tmp_path)] == ["line    1\n"]


def test_pruning_leaves_files_that_are_not_backups(tmp_path: Path) -> None:
    others = [tmp_path / "audit-policy.log", tmp_path / "audit-node-2026-11-16T08-00-00.250.log"]
    for other in others:
        other.write_text("mine")
    file = AuditFile(tmp_path / "audit.log", max_size=10, max_backup=1)
    for number in range(4):
        file.write(f"line {number:4}\n".encode())
    file.close()
    assert [other.read_text() for other in others] == ["mine", "mine"]
    assert len(list(tmp_path.iterdir())) == 4


def test_log_that_cannot_be_rotated_grows_instead_of_losing_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(path: Path) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files, "create", no_space)
    first, second = (AuditFile(tmp_path / "audit.log", max_size=10) for _ in range(2))
    for number in range(4):
        (first, second)[number % 2].write(f"line {number:4}\n".encode())
    first.close()
    second.close()
    assert _lines(tmp_path) == [f"line {number:4}" for number in range(4)]


@pytest.mark.usefixtures("umask")
def test_log_and_backups_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "audit.log"
    _write(path, 0, 100 * SIZE)
    assert {_mode(file) for file in path.parent.iterdir()} == {0o600}
    assert len(list(path.parent.iterdir())) == 2
    assert _mode(path.parent) == 0o700


def test_world_readable_log_is_tightened(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.touch()
    path.chmod(0o644)
    AuditFile(path).close()
    assert _mode(path) == 0o600


def test_group_readable_log_keeps_its_mode_after_rotation(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.touch()
    path.chmod(0o640)
    _write(path, 0, 100 * SIZE)
    assert [_mode(file) for file in tmp_path.iterdir()] == [0o640, 0o640]


def test_log_may_be_a_device() -> None:
    before = _mode(Path("/dev/null"))
    file = AuditFile(Path("/dev/null"))
    file.write(b"line\n")
    file.close()
    assert _mode(Path("/dev/null")) == before


def test_log_continues_after_its_directory_was_deleted(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "audit.log"
    file = AuditFile(path, max_size=100 * SIZE)
    file.write(b"before\n")
    shutil.rmtree(path.parent)
    file.write(b"after\n")
    file.close()
    assert path.read_text() == "after\n"
    assert (_mode(path.parent), _mode(path)) == (0o700, 0o600)


def test_line_after_a_full_disk_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk takes a part of a line, then nothing. The next line must not be added to that part."""
    path = tmp_path / "audit.log"
    file = AuditFile(path)
    accepted = [6, 3, 0, 0]
    real = file._file

    class FullDisk:
        def write(self, data: memoryview) -> int:
            if not accepted:
                return real.write(data)
            size = accepted.pop(0)
            if not size:
                raise OSError(errno.ENOSPC, "No space left on device")
            return real.write(data[:size])

    monkeypatch.setattr(file, "_file", FullDisk())
    for _ in range(2):
        with pytest.raises(OSError, match="No space left"):
            file.write(b"first\nsecond\n")
    file.write(b"third\n")
    file.write(b"fourth\n")
    real.close()
    assert path.read_text() == "first\nsec\nthird\nfourth\n"


def test_lock_is_released_when_the_log_cannot_be_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "audit.log"
    file, other = AuditFile(path, max_size=10), AuditFile(path, max_size=10)
    file.write(b"123456789\n")

    def fail(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", fail)
        with pytest.raises(OSError, match="Too many"):
            file.write(b"a\n")
    fcntl.flock(other._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    file.close()
    other.close()
