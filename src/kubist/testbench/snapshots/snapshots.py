"""Named snapshots of one server: files in its data directory, or in a temporary one if the server is in memory."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import tempfile
from pathlib import Path

from kubist.api.object_store.content import restore_file
from kubist.api.object_store.registry import Registry
from kubist.base import files
from kubist.model.meta import fields, status, times
from kubist.model.meta.names import dns_subdomain
from kubist.model.meta.object import Object
from kubist.storage.backup.snapshot_file import SnapshotInfo, read_info, write_snapshot
from kubist.storage.cache.cache import ROOT
from kubist.storage.image import innermost
from kubist.storage.store import Conflict, OpenFailed
from kubist.testbench.control_api.control_api import conflict

log = logging.getLogger("kubist.bench")

MOST_SNAPSHOTS = 100
MOST_BYTES = 4 << 30
"""Limits of the named snapshots of one server: their number, and the size of their files."""
LONGEST_NAME = 200
SUFFIX = ".snapshot"
SHARED = "there are no snapshots: the store is shared with other servers"
_FILE_BYTES = 200
"""Approximate bytes that a key takes in a file in addition to its value."""


class Snapshots:
    """Named snapshots. Operations run one after another."""

    def __init__(self, registry: Registry, data_dir: str) -> None:
        self._registry = registry
        self._data_dir = data_dir
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._lock = asyncio.Lock()

    def close(self) -> None:
        """Removes the snapshots of a server in memory."""
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None

    async def list_all(self) -> list[Object]:
        async with self._lock:
            infos = await asyncio.to_thread(self._infos)
        return [_state(name, info) for name, info in infos.items()]

    async def get(self, name: str) -> Object:
        async with self._lock:
            return _state(name, await self._info(name))

    def path_of(self, name: str) -> Path:
        """File of a snapshot. Raises 404."""
        return self._known(name)

    async def save(self, name: str) -> Object:
        """Saves the content of the server. 409 if the name is taken or there is no room, 422 if it is invalid."""
        self._check_local()
        why = dns_subdomain(name) or (
            [f"must be no more than {LONGEST_NAME} characters"] * (len(name) > LONGEST_NAME)
        )
        if why:
            raise status.invalid(
                "kubist.io", "Snapshot", name, [fields.invalid("name", name, each) for each in why]
            )
        async with self._lock:
            path = self._path(name)
            if path.exists():
                raise status.already_exists("kubist.io", "snapshots", name)
            scan = await innermost(self._registry.store).scan(ROOT)
            size = sum(len(kv.value) + len(kv.key) + _FILE_BYTES for kv in scan.items)
            try:
                await asyncio.to_thread(self._check_room, size)
                info = await asyncio.to_thread(write_snapshot, path, scan.items, scan.revision, times.now())
            except (OSError, sqlite3.Error) as error:
                conflict(f"snapshot {name} was not saved in {path.parent}: {error}")
        return _state(name, info)

    async def delete(self, name: str) -> Object:
        """Deletes a snapshot and returns it. A damaged one can be deleted too."""
        async with self._lock:
            path = self._known(name)
            try:
                state = _state(name, await asyncio.to_thread(read_info, path))
            except OpenFailed:
                state = {"name": name}
            try:
                path.unlink()
            except OSError as error:
                conflict(f"snapshot {name} was not deleted: {error}")
        return state

    async def restore(self, name: str) -> Object:
        """Makes a snapshot the content of the server, in one step."""
        self._check_local()
        async with self._lock:
            info = await self._info(name)
            try:
                await restore_file(self._registry, self._path(name))
            except OpenFailed as error:
                conflict(f"snapshot {name} cannot be restored: {error}")
            except Conflict:
                conflict(f"snapshot {name} was not restored: clients write too often. Try again")
        return _state(name, info)

    def _check_local(self) -> None:
        if not self._registry.store.local:
            conflict(SHARED)

    @property
    def _directory(self) -> Path:
        if self._data_dir:
            return Path(self._data_dir) / "snapshots"
        if self._temporary is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="kubist-snapshots-")
        return Path(self._temporary.name)

    def _path(self, name: str) -> Path:
        return self._directory / f"{name}{SUFFIX}"

    def _known(self, name: str) -> Path:
        """File of a snapshot. 404 if there is none, also for invalid names."""
        if not dns_subdomain(name) and len(name) <= LONGEST_NAME and (path := self._path(name)).is_file():
            return path
        raise status.not_found("kubist.io", "snapshots", name)

    async def _info(self, name: str) -> SnapshotInfo:
        path = self._known(name)
        try:
            return await asyncio.to_thread(read_info, path)
        except OpenFailed as error:
            conflict(f"snapshot {name} cannot be read: {error}")

    def _infos(self) -> dict[str, SnapshotInfo]:
        """All readable snapshots by name, in order of their names."""
        infos: dict[str, SnapshotInfo] = {}
        for path in self._files():
            try:
                infos[path.name.removesuffix(SUFFIX)] = read_info(path)
            except OpenFailed as error:
                log.warning("snapshot left out: %s", error)
        return infos

    def _files(self) -> list[Path]:
        if not self._directory.is_dir():
            return []
        return sorted(path for path in self._directory.glob(f"[!.]*{SUFFIX}") if path.is_file())

    def _check_room(self, size: int) -> None:
        """Raises 409 if another snapshot of this size exceeds a limit."""
        files.make_directory(self._directory)
        paths = self._files()
        if len(paths) >= MOST_SNAPSHOTS:
            conflict(f"there are {len(paths)} snapshots, the most that a server keeps: delete one")
        total = sum(path.stat().st_size for path in paths)
        if total + size > MOST_BYTES:
            conflict(f"the snapshots of a server take at most {MOST_BYTES >> 20} MiB: delete one")


def _state(name: str, info: SnapshotInfo) -> Object:
    return {
        "name": name,
        "created": info.created,
        "resourceVersion": str(info.revision),
        "objects": info.objects,
        "bytes": info.size,
    }
