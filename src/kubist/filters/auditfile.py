"""The file of an audit log, which several workers may write to: every write is whole lines, one of them rotates it."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path


class AuditFile:
    """`max_size` in bytes is from where on a new file is begun; of the files of earlier times `max_backup` are kept,
    for `max_age` days. 0: no limit."""

    def __init__(self, path: Path, max_size: int = 0, max_backup: int = 0, max_age: int = 0) -> None:
        self._path = path
        self._max_size = max_size
        self._max_backup, self._max_age = max_backup, max_age
        self._open()

    def _open(self) -> None:
        self._file = self._path.open("ab", buffering=0)

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
            self.close()
            self._open()
        if os.fstat(self._file.fileno()).st_size + size > self._max_size:
            fcntl.flock(self._file, fcntl.LOCK_EX)
            if not self._moved():
                self._rotate()
            self.close()
            self._open()

    def _moved(self) -> bool:
        """Whether another process has put the file aside."""
        try:
            return not os.path.samestat(self._path.stat(), os.fstat(self._file.fileno()))
        except FileNotFoundError:
            return True

    def _rotate(self) -> None:
        """Put the file aside under its time, and throw away what is too old or too many."""
        path = self._path
        now = time.time()
        stamp = time.strftime("%Y-%m-%dT%H-%M-%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03}"
        path.rename(path.with_name(f"{path.stem}-{stamp}{path.suffix}"))
        kept = sorted(path.parent.glob(f"{path.stem}-*{path.suffix}"), reverse=True)
        for index, old in enumerate(kept):
            too_old = self._max_age and old.stat().st_mtime < now - self._max_age * 86400
            if too_old or (self._max_backup and index >= self._max_backup):
                old.unlink()
