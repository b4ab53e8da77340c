"""Backups of an audit log: their names, their number and age, and their compression."""

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
        found = []
        for match in filter(None, map(self._name.fullmatch, os.listdir(self._log.parent))):
            with contextlib.suppress(ValueError):
                seconds = calendar.timegm(time.strptime(match[1], STAMP))
                found.append(Backup(seconds * 1000 + int(match[2]), self._log.with_name(match[0])))
        return sorted(found, reverse=True)

    def reserve(self, now: float) -> Path:
        """Creates an empty file under a free name, which the caller may replace. The name is later than that
        of every other backup even if the clock stands still or was set back, because pruning goes by the
        names."""
        held = self.all()
        moment = max(int(now * 1000), held[0].moment + 1 if held else 0)
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
        held = self.all()
        moments = list(dict.fromkeys(backup.moment for backup in held))
        kept = set(moments[: self._max_backup] if self._max_backup else moments)
        for backup in held:
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
        """Compresses backups that are not compressed."""
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
            fcntl.flock(source, fcntl.LOCK_EX)  # Waits for writers that opened the file before its rotation.
            found = os.fstat(source.fileno())
            # An empty file may only reserve a name: by now the name may belong to a log, which must not be deleted.
            if not found.st_nlink or not found.st_size:
                return
            mode = stat.S_IMODE(found.st_mode)
            descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
            os.fchmod(descriptor, mode)
            with os.fdopen(descriptor, "wb") as output, gzip.GzipFile("", "wb", fileobj=output) as packed:
                while (piece := source.read(_PIECE)) and not self._stopping:
                    packed.write(piece)
            os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))
            (target if self._stopping else path).unlink()
