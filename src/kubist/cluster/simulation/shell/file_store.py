"""Files that commands wrote in simulated containers, in memory and bounded."""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from typing import NamedTuple

from kubist.cluster.simulation.shell.errors import NoSpace
from kubist.model.meta.object import Object

CONTAINER_LIMIT = 16 * 1024 * 1024
"""Maximum bytes of files in a container."""
TOTAL_LIMIT = 64 * 1024 * 1024
"""Maximum bytes of files in all containers of a server."""
ALWAYS = ("/", "/tmp")
"""Directories that always exist."""
FILE_OVERHEAD = 256
"""Bytes that each file counts in addition to its content."""


class File(NamedTuple):
    content: bytes
    mode: int = 0o644


UNKNOWN = File(b"", -1)
"""File whose content is not known."""


class Files:
    """Files of one container by absolute path. Directories exist as parents of files, or in `directories`."""

    def __init__(self, store: FileStore, keep: Callable[[Files], None]) -> None:
        self._store = store
        self._keep = keep
        self.files: dict[str, File] = {}
        self.directories: set[str] = set()
        self.size = 0

    def put(self, path: str, file: File) -> None:
        old = self.files.get(path)
        grown = _cost(path, file) - (_cost(path, old) if old is not None else 0)
        self._grow(grown)
        self.files[path] = file

    def make_directory(self, path: str) -> None:
        if path not in self.directories:
            self._grow(FILE_OVERHEAD + len(path))
            self.directories.add(path)

    def check_room(self, size: int) -> None:
        """Raises NoSpace if there is no room for this many more bytes."""
        if size > 0 and (self.size + size > CONTAINER_LIMIT or self._store.size + size > TOTAL_LIMIT):
            raise NoSpace

    def _grow(self, size: int) -> None:
        self.check_room(size)
        self.size += size
        self._store.size += size
        self._keep(self)

    def remove(self, path: str) -> bool:
        """Removes a file, or a directory with its files. False if there is none."""
        doomed = [entry for entry in self.files if entry == path or entry.startswith(f"{path}/")]
        for entry in doomed:
            self._grow(-_cost(entry, self.files.pop(entry)))
        empty = {entry for entry in self.directories if entry == path or entry.startswith(f"{path}/")}
        for entry in empty:
            self._grow(-FILE_OVERHEAD - len(entry))
        self.directories -= empty
        return bool(doomed or empty)

    def is_directory(self, path: str) -> bool:
        """Whether a path is a directory. The root and /tmp always are."""
        if path in ALWAYS or path in self.directories:
            return True
        return any(entry.startswith(f"{path}/") for entry in (*self.files, *self.directories))


class FileStore:
    """Files of all containers. Those of deleted pods are dropped when a container is next looked up."""

    def __init__(self, exists: Callable[[Object], bool]) -> None:
        self._exists = exists
        self.size = 0
        self._volumes: dict[str, tuple[Object, dict[str, Files]]] = {}

    def of(self, pod: Object, container: str) -> Files:
        """Files of a container. A new, empty set is kept only once a file is in it."""
        for uid, (stored_pod, containers) in list(self._volumes.items()):
            if not self._exists(stored_pod):
                self.size -= sum(files.size for files in containers.values())
                del self._volumes[uid]
        _, containers = self._volumes.get(pod["metadata"]["uid"], (pod, {}))
        return containers.get(container) or Files(self, lambda files: self._keep(pod, container, files))

    def _keep(self, pod: Object, container: str, files: Files) -> None:
        self._volumes.setdefault(pod["metadata"]["uid"], (pod, {}))[1].setdefault(container, files)


def _cost(path: str, file: File) -> int:
    return len(file.content) + len(path) + FILE_OVERHEAD


def absolute(path: str, directory: str = "/") -> str:
    """Absolute, normal form of a path. `..` never leads above the root."""
    return posixpath.normpath(posixpath.join("/", directory, path)).replace("//", "/")
