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


def make_directory(path: Path) -> None:
    """Create a directory and its missing parents with mode 0700. An existing directory keeps its mode."""
    if path.is_dir():
        return
    if path.parent != path:
        make_directory(path.parent)
    try:
        path.mkdir(DIRECTORY_MODE)
    except FileExistsError:
        if not path.is_dir():
            raise


def create(path: Path) -> int:
    """Descriptor of a new file. FileExistsError if the name is taken, also by a dangling link."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
    os.fchmod(descriptor, FILE_MODE)
    return descriptor


def tighten(descriptor: int) -> None:
    """Make a file that others than its owner and group can reach private. Devices and pipes keep their mode."""
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and found.st_mode & 0o007:
        os.fchmod(descriptor, FILE_MODE)


def private(path: Path) -> None:
    """Take all permissions of a file away from others than its owner. A file of another user stays as it is."""
    mode = path.stat().st_mode
    if stat.S_ISREG(mode) and mode & 0o077:
        try:
            path.chmod(FILE_MODE)
        except PermissionError:
            log.warning("%s has mode %04o: its owner should make it 0600", path, stat.S_IMODE(mode))


@contextmanager
def draft(target: Path, *, durable: bool = False) -> Iterator[Path]:
    """A new, empty file beside `target` that takes its place at the end of the block, unless the block fails.

    A `durable` file is on disk before the block's caller goes on: a crash leaves the old file or the new one.
    """
    make_directory(target.parent)
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    path = Path(name)
    try:
        os.fchmod(descriptor, FILE_MODE)
        yield path
        if durable:
            os.fsync(descriptor)
        path.replace(target)
    finally:
        os.close(descriptor)
        path.unlink(missing_ok=True)
    if durable:
        sync(target.parent)


def write(path: Path, content: bytes) -> None:
    """Replace a file by `content`, whole or not at all. Missing directories are created."""
    with draft(path) as temporary:
        temporary.write_bytes(content)


def sync(path: Path) -> None:
    """Make a file, or the names in a directory, durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold a directory's lock, which other processes wait for."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
