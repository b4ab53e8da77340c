"""File of an audit log. Several workers append whole lines to it; one of them rotates it."""

from __future__ import annotations

import calendar
import contextlib
import fcntl
import logging
import os
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from kubist import files

log = logging.getLogger("kubist.filters")
STAMP = "%Y-%m-%dT%H-%M-%S"


class AuditFile:
    """Audit log with size-based rotation. 0 means no limit.

    A file of `max_size` bytes becomes a backup, named by its time: `audit-2026-11-16T08-00-00.000.log`. The
    newest `max_backup` backups are kept, for `max_age` days.
    """

    def __init__(self, path: Path, max_size: int = 0, max_backup: int = 0, max_age: int = 0) -> None:
        self._path = path
        self._max_size = max_size
        self._max_backup, self._max_age = max_backup, max_age
        self._mode = files.FILE_MODE
        files.make_directory(path.parent)
        self._open()

    def _open(self) -> None:
        """Opens or creates the log. A new log gets the mode of the rotated file."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
        try:
            descriptor = os.open(self._path, flags | os.O_CREAT | os.O_EXCL, self._mode)
            os.fchmod(descriptor, self._mode)
        except FileExistsError:
            descriptor = os.open(self._path, flags | os.O_CREAT, self._mode)
            files.tighten(descriptor)
            self._mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
        self._file = os.fdopen(descriptor, "ab", buffering=0)

    def close(self) -> None:
        self._file.close()

    def write(self, lines: bytes) -> None:
        if self._max_size:
            self._make_room(len(lines))
        left = memoryview(lines)
        while left:
            left = left[self._file.write(left) :]

    def _make_room(self, size: int) -> None:
        if self._moved():
            self._reopen()
        found = os.fstat(self._file.fileno())
        if found.st_size + size > self._max_size and stat.S_ISREG(found.st_mode):
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
        self._open()
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
        self._path.rename(self._reserve(now))
        for index, (_, old) in enumerate(self._backups()):
            with contextlib.suppress(FileNotFoundError):  # another process deleted it
                too_old = self._max_age and old.stat().st_mtime < now - self._max_age * 86400
                if too_old or (self._max_backup and index >= self._max_backup):
                    old.unlink()

    def _reserve(self, now: float) -> Path:
        """Creates an empty file under a free name, which the caller may replace. The name is later than that
        of every other backup even if the clock stands still or was set back, because pruning goes by the
        names."""
        newest, _ = next(self._backups(), (0, None))
        moment = max(int(now * 1000), newest + 1)
        while True:
            stamp = time.strftime(STAMP, time.gmtime(moment // 1000))
            backup = self._path.with_name(f"{self._path.stem}-{stamp}.{moment % 1000:03}{self._path.suffix}")
            try:
                os.close(files.create(backup))
            except FileExistsError:
                moment += 1
            else:
                return backup

    def _backups(self) -> Iterator[tuple[int, Path]]:
        """Time in milliseconds and path of each backup of this log, newest first."""
        name = re.compile(
            f"{re.escape(self._path.stem)}-(.*)\\.(\\d{{3}}){re.escape(self._path.suffix)}", re.ASCII
        )
        found = []
        for match in filter(None, map(name.fullmatch, os.listdir(self._path.parent))):
            with contextlib.suppress(ValueError):
                seconds = calendar.timegm(time.strptime(match[1], STAMP))
                found.append((seconds * 1000 + int(match[2]), self._path.with_name(match[0])))
        return iter(sorted(found, reverse=True))
