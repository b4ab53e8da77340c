"""File of an audit log. Several workers append whole lines to it; one of them rotates it."""

from __future__ import annotations

import fcntl
import logging
import os
import stat
import time
from pathlib import Path

from kubist.api.filters.audit.backups import Backups, Compressor
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
        """Whether the log ends within a line, because the disk was full."""
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
        while True:  # The lock keeps compression from a backup to which a line is still added.
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
