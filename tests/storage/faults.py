"""Failing disks: replaces SQLite's system calls in this process by calls that return disk errors."""

from __future__ import annotations

import contextlib
import ctypes
import ctypes.util
import sqlite3
from collections.abc import Iterator
from typing import Any

_Write = ctypes.CFUNCTYPE(
    ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64, use_errno=True
)
_SetSystemCall = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


class _Vfs(ctypes.Structure):
    """`sqlite3_vfs`. Only the last member but two is used."""

    _fields_ = (
        ("version", ctypes.c_int),
        ("file_size", ctypes.c_int),
        ("longest_path", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("data", ctypes.c_void_p),
        ("methods", ctypes.c_void_p * 13),
        ("set_system_call", _SetSystemCall),
    )


def _vfs() -> Any:
    library = ctypes.util.find_library("sqlite3")
    if library is None:
        return None
    found = ctypes.CDLL(library)
    found.sqlite3_libversion.restype = ctypes.c_char_p
    if found.sqlite3_libversion().decode() != sqlite3.sqlite_version:
        return None  # the module has its own, which cannot be got at
    found.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
    return found.sqlite3_vfs_find(None)


def possible() -> bool:
    vfs = _vfs()
    return bool(vfs) and vfs.contents.version >= 3


@contextlib.contextmanager
def failing_writes(number: int) -> Iterator[None]:
    """Makes every write to any database fail with this operating system error."""
    vfs = _vfs()

    def write(*_: int) -> int:
        ctypes.set_errno(number)
        return -1

    callback = _Write(write)
    address = ctypes.cast(callback, ctypes.c_void_p)
    names = (b"pwrite", b"pwrite64", b"write")
    for name in names:
        vfs.contents.set_system_call(ctypes.addressof(vfs.contents), name, address)
    try:
        yield
    finally:
        for name in names:
            vfs.contents.set_system_call(ctypes.addressof(vfs.contents), name, None)
