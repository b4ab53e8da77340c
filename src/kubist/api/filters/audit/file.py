"""File of an audit log. Several workers append whole lines to it; one of them rotates it and keeps its backups within
their limits."""

from __future__ import annotations

import calendar
import contextlib
import fcntl
import logging
import os
import re
import stat
import threading
import time
from pathlib import Path
from typing import NamedTuple

from kubist.base import files

log = logging.getLogger("kubist.filters")


class AuditFile:
    """Audit log with size-based rotation. 0 means no limit.

    A file of `max_size` bytes becomes a backup. `max_backup`, `max_age`: see `Backups`. `compress`: backups are
    compressed with gzip.
    """

    def __init__(
        self, path: Path, max_size: int = 0, max_backup: int = 0, max_age: int = 0, *, compress: bool = False
    ) -> None:
        self._path = path
        self._max_size = max_size
        self._mode = files.FILE_MODE
        self._is_torn = False
        """Whether the log ends in an incomplete line, because the disk was full."""
        self._open()
        self._backups = Backups(path, max_backup, max_age)
        self._compressor: Compressor | None = None
        if compress:
            self._compressor = Compressor(self._backups)
            self._compressor.start()

    def _open(self) -> None:
        """Opens or creates the log, and its directory. A new log gets the mode of the rotated file."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
        files.make_directory(self._path.parent)
        try:
            descriptor = os.open(self._path, flags | os.O_CREAT | os.O_EXCL, self._mode)
            os.fchmod(descriptor, self._mode)
        except FileExistsError:
            descriptor = os.open(self._path, flags | os.O_CREAT, self._mode)
            files.tighten(descriptor)
            self._mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
        self._file = os.fdopen(descriptor, "ab", buffering=0)

    def close(self) -> None:
        if self._compressor is not None:
            self._compressor.stop()
        self._file.close()

    def write(self, lines: bytes) -> None:
        if self._max_size:
            self._make_room(len(lines))
        if self._compressor is None:
            self._append(lines)
            return
        while True:  # The lock prevents the compression of a backup while a line is being appended to it.
            fcntl.flock(self._file, fcntl.LOCK_SH)
            try:
                if not self._moved():
                    self._append(lines)
                    return
            finally:
                fcntl.flock(self._file, fcntl.LOCK_UN)
            self._reopen()

    def _append(self, lines: bytes) -> None:
        if self._is_torn:
            lines = b"\n" + lines
        written = 0
        try:
            while written < len(lines):
                written += self._file.write(memoryview(lines)[written:])
        finally:
            if written:
                self._is_torn = not lines.endswith(b"\n", 0, written)

    def _make_room(self, size: int) -> None:
        if self._moved():
            self._reopen()
        info = os.fstat(self._file.fileno())
        if info.st_size + size > self._max_size and stat.S_ISREG(info.st_mode):
            fcntl.flock(self._file, fcntl.LOCK_EX)
            try:
                if not self._moved():
                    self._rotate()
            except OSError as error:
                log.error("the audit log grows past its limit because it cannot be rotated: %s", error)
            self._reopen()

    def _reopen(self) -> None:
        """Opens the log again. Closing the old file releases its lock."""
        before = self._file
        try:
            self._open()
        except OSError:
            fcntl.flock(before, fcntl.LOCK_UN)
            raise
        self._is_torn = False
        before.close()

    def _moved(self) -> bool:
        """Whether another process rotated the file."""
        try:
            return not os.path.samestat(self._path.stat(), os.fstat(self._file.fileno()))
        except FileNotFoundError:
            return True

    def _rotate(self) -> None:
        """Renames the log to a backup, then deletes backups over the limits. The caller holds the file's lock."""
        now = time.time()
        self._path.rename(self._backups.reserve(now))
        self._backups.prune(now)
        if self._compressor is not None:
            self._compressor.start()


STAMP = "%Y-%m-%dT%H-%M-%S"
_COMPRESSED = ".gz"
_PIECE = 1 << 16


class Backup(NamedTuple):
    """Backup with its time in milliseconds."""

    moment: int
    path: Path

    @property
    def is_compressed(self) -> bool:
        return self.path.suffix == _COMPRESSED


class Backups:
    """Backups of one log, named by their times: `audit-2026-11-16T08-00-00.000.log`, with `.gz` if compressed.

    The newest `max_backup` are kept, for `max_age` days. 0 means no limit.
    """

    def __init__(self, log_path: Path, max_backup: int, max_age: int) -> None:
        self._log = log_path
        self._max_backup, self._max_age = max_backup, max_age
        stem, suffix = re.escape(log_path.stem), re.escape(log_path.suffix)
        self._name = re.compile(f"{stem}-(.*)\\.(\\d{{3}}){suffix}({re.escape(_COMPRESSED)})?", re.ASCII)

    def all(self) -> list[Backup]:
        """Backups, newest first. One that is being compressed occurs twice."""
        backups = []
        for match in filter(None, map(self._name.fullmatch, os.listdir(self._log.parent))):
            with contextlib.suppress(ValueError):
                seconds = calendar.timegm(time.strptime(match[1], STAMP))
                backups.append(Backup(seconds * 1000 + int(match[2]), self._log.with_name(match[0])))
        return sorted(backups, reverse=True)

    def reserve(self, now: float) -> Path:
        """Creates an empty file under a free name, which the caller may replace. The name sorts after every other
        backup even if the clock stands still or was set back, because pruning relies on the names."""
        backups = self.all()
        moment = max(int(now * 1000), backups[0].moment + 1 if backups else 0)
        while True:
            stamp = time.strftime(STAMP, time.gmtime(moment // 1000))
            backup = self._log.with_name(f"{self._log.stem}-{stamp}.{moment % 1000:03}{self._log.suffix}")
            try:
                os.close(files.create(backup))
            except FileExistsError:
                moment += 1
            else:
                return backup

    def prune(self, now: float) -> None:
        """Deletes backups over the limits."""
        backups = self.all()
        moments = list(dict.fromkeys(backup.moment for backup in backups))
        kept = set(moments[: self._max_backup] if self._max_backup else moments)
        for backup in backups:
            with contextlib.suppress(FileNotFoundError):  # another process deleted it
                too_old = self._max_age and backup.path.stat().st_mtime < now - self._max_age * 86400
                if too_old or backup.moment not in kept:
                    backup.path.unlink()


class Compressor:
    """Compresses the backups of a log in a thread. Only one process compresses a backup."""

    def __init__(self, backups: Backups) -> None:
        self._backups = backups
        self._stopping = False
        self._due = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kubist-audit-compression", daemon=True)
        self._thread.start()

    def start(self) -> None:
        """Compresses backups that are not compressed yet."""
        self._due.set()

    def stop(self) -> None:
        """Ends the thread. A backup that is half compressed is compressed again at the next start."""
        self._stopping = True
        self._due.set()
        self._thread.join()

    def _run(self) -> None:
        while self._due.wait() and not self._stopping:
            self._due.clear()
            for backup in self._backups.all():
                if not backup.is_compressed and not self._stopping:
                    try:
                        self._compress(backup.path)
                    except FileNotFoundError:
                        continue  # Another process compressed or deleted it.
                    except OSError as error:
                        log.error("the audit log %s cannot be compressed: %s", backup.path, error)

    def _compress(self, path: Path) -> None:
        # Saves start-up time: only --audit-log-compress needs it.
        import gzip

        target = path.with_name(path.name + _COMPRESSED)
        with path.open("rb") as source:
            fcntl.flock(source, fcntl.LOCK_EX)  # Wait for writers that opened the file before its rotation.
            info = os.fstat(source.fileno())
            # An empty file may only reserve a name. By now that name may belong to a log, which must not be deleted.
            if not info.st_nlink or not info.st_size:
                return
            mode = stat.S_IMODE(info.st_mode)
            descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
            os.fchmod(descriptor, mode)
            with os.fdopen(descriptor, "wb") as output, gzip.GzipFile("", "wb", fileobj=output) as packed:
                while (piece := source.read(_PIECE)) and not self._stopping:
                    packed.write(piece)
            os.utime(target, ns=(info.st_atime_ns, info.st_mtime_ns))
            (target if self._stopping else path).unlink()
