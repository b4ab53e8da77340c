"""The running server of a data directory: its lock, its record and its log.

A server holds a POSIX lock on `server.lock` while it runs. The kernel releases the lock when the process ends, even by
a signal, and names the process that holds it. Therefore no file can name a process that has ended, or another process
with the same ID. `server.json` has the address; it counts only if it names the holder of the lock.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import struct
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from kubist.base import files

LOCK, RECORD, LOG = "server.lock", "server.json", "server.log"
_FLOCK = "qqihh" if sys.platform == "darwin" else "hhqqi0q"
"""`struct flock` of the system."""


class Record(NamedTuple):
    """Facts about a running server, for `kubist status`."""

    pid: int
    url: str
    started: float
    """Seconds since the epoch."""
    version: str
    kubeconfig: str
    in_memory: bool = False
    detached: bool = False
    etcd_servers: tuple[str, ...] = ()


class Instance:
    """Registration of the server that this process runs."""

    def __init__(self, directory: Path) -> None:
        """Raises BlockingIOError if another server has registered."""
        self._path = directory / RECORD
        self._lock = os.open(
            directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, files.FILE_MODE
        )
        try:
            fcntl.lockf(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock)
            if error.errno in (errno.EACCES, errno.EAGAIN):
                raise BlockingIOError(error.errno, error.strerror) from None
            raise

    def announce(self, record: Record) -> None:
        files.write(self._path, json.dumps(record._asdict()).encode())

    def close(self) -> None:
        self._path.unlink(missing_ok=True)
        os.close(self._lock)


@contextlib.contextmanager
def registered(directory: Path, *, exclusive: bool) -> Iterator[Instance | None]:
    """Registers this server until the end of the block. Servers on one etcd are not `exclusive`: they may share a
    directory, and only the first is registered."""
    try:
        instance = Instance(directory)
    except BlockingIOError:
        if exclusive:
            raise
        yield None
        return
    try:
        yield instance
    finally:
        instance.close()


def now() -> float:
    """Time for the uptime of servers, which have clocks of their own."""
    return time.time()


def holder(directory: Path) -> int | None:
    """ID of the process that serves the directory; None if there is none, 0 if it runs in another container."""
    try:
        descriptor = os.open(directory / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        if sys.platform == "darwin":
            request = struct.pack(_FLOCK, 0, 0, 0, fcntl.F_WRLCK, os.SEEK_SET)
            _, _, pid, kind, _ = struct.unpack(_FLOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, request))
        else:
            request = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            kind, _, _, _, pid = struct.unpack(_FLOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, request))
    finally:
        os.close(descriptor)
    return None if kind == fcntl.F_UNLCK else max(int(pid), 0)


def read_record(directory: Path, pid: int) -> Record | None:
    """Record of the process that holds the lock; None until it is ready."""
    try:
        fields: dict[str, Any] = json.loads((directory / RECORD).read_bytes())
        record = Record(**{**fields, "etcd_servers": tuple(fields["etcd_servers"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return record if record.pid == pid or not pid else None


def in_memory_servers() -> list[Path]:
    """Directories of this user's servers in memory."""
    directories = []
    for directory in sorted(Path(tempfile.gettempdir()).glob("kubist-*")):
        with contextlib.suppress(OSError):
            if directory.stat().st_uid == os.geteuid() and holder(directory) is not None:
                directories.append(directory)
    return directories
