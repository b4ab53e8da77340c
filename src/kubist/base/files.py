"""Private files and directories: modes 0600 and 0700 under any umask; no predictable temporary names."""

from __future__ import annotations

import fcntl
import logging
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

log = logging.getLogger("kubist")

FILE_MODE = 0o600
DIRECTORY_MODE = 0o700
PROGRAM_DIRECTORY_MODE = 0o755
"""Mode of directories of programs, which other users may start but not replace."""


def make_directory(path: Path, mode: int = DIRECTORY_MODE) -> None:
    """Create a directory and its missing parents with `mode`, from which the umask may remove permissions. An
    existing directory keeps its mode."""
    if path.is_dir():
        return
    if path.parent != path:
        make_directory(path.parent, mode)
    try:
        path.mkdir(mode)
    except FileExistsError:
        if not path.is_dir():
            raise


def create(path: Path) -> int:
    """Descriptor of a new file. FileExistsError if the name exists, even as a dangling link."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
    os.fchmod(descriptor, FILE_MODE)
    return descriptor


def tighten(descriptor: int) -> None:
    """Makes a file private (0600) if users other than owner and group have access. Devices and pipes keep their
    mode."""
    info = os.fstat(descriptor)
    if stat.S_ISREG(info.st_mode) and info.st_mode & 0o007:
        os.fchmod(descriptor, FILE_MODE)


def private(path: Path) -> None:
    """Removes all permissions except the owner's. Logs a warning for a file of another user or a read-only one."""
    mode = path.stat().st_mode
    if stat.S_ISREG(mode) and mode & 0o077:
        try:
            path.chmod(FILE_MODE)
        except OSError:
            log.warning("%s has mode %04o: its owner should make it 0600", path, stat.S_IMODE(mode))


@contextmanager
def draft(target: Path, *, durable: bool = False) -> Iterator[Path]:
    """New, empty file beside `target` that replaces it at the end of the block, unless the block fails.

    A `durable` file is on disk before the caller continues: a crash leaves the old or the new file.
    """
    make_directory(target.parent)
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        error.filename = str(target)  # the temporary name would mean nothing to users
        raise
    path = Path(name)
    try:
        try:
            os.fchmod(descriptor, FILE_MODE)
            yield path
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)  # A program that is open for writing cannot be started.
        path.replace(target)
    finally:
        path.unlink(missing_ok=True)
    if durable:
        sync(target.parent)


def write(path: Path, content: bytes) -> None:
    """Replaces a file atomically. Missing directories are created."""
    with draft(path) as temporary:
        temporary.write_bytes(content)


def sync(path: Path) -> None:
    """Makes a file, or the names in a directory, durable (fsync)."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Holds the lock of a directory. Other processes wait for it."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
