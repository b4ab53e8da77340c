"""Files that simulated commands created on volumes: an emptyDir keeps them for the pod, a hostPath for the node."""

from __future__ import annotations

from collections.abc import Container

from kubist.cluster.simulation.commands import file_scopes
from kubist.model.meta.object import Object

MAX_SIZE = 4 << 20
"""Maximum size of all paths that are remembered, in characters. Then all are forgotten."""
MAX_SEEN = 1_000_000
"""Maximum size of the paths that one container sees. A volume may be mounted thousands of times."""
MAX_PATH = 4096
"""Longer paths do not exist in Linux."""
OVERHEAD = 100
"""Characters that each path counts besides its own."""


class Files:
    def __init__(self) -> None:
        self._kept: dict[str, set[str]] = {}
        """Paths below a directory, by the key of the directory."""
        self._size = 0

    def seen_by(self, pod: Object, container: Object) -> set[str]:
        """Paths that exist in a container that starts."""
        if not self._kept:
            return set()
        found: set[str] = set()
        left = MAX_SEEN
        for mount, scope in file_scopes(pod, container):
            for path in self._kept.get(scope, ()):
                left -= len(mount) + len(path)
                if left < 0:
                    return found
                found.add(mount + path)
        return found

    def keep(self, pod: Object, container: Object, paths: set[str]) -> None:
        """Remembers the files of a container that are on volumes."""
        scopes = dict(reversed(file_scopes(pod, container)))
        for path in paths if scopes else ():
            mount = _mount_of(path, scopes)
            if mount is None:
                continue
            scope = scopes[mount]
            kept = self._kept.setdefault(scope, set())
            below = path[len(mount) :]
            if below in kept:
                continue
            self._size += len(below) + len(scope) + OVERHEAD
            if self._size > MAX_SIZE:
                self._kept, self._size, kept = {}, 0, set()
                self._kept[scope] = kept
            kept.add(below)

    def forget(self, uid: str) -> None:
        """Forgets the files of a pod."""
        if uid and self._kept:
            for scope in [scope for scope in self._kept if scope.startswith(f"pod/{uid}/")]:
                self._size -= sum(len(path) + len(scope) + OVERHEAD for path in self._kept.pop(scope))


def _mount_of(path: str, mounts: Container[str]) -> str | None:
    """Longest mount path above a path."""
    end = path.rfind("/") if len(path) <= MAX_PATH else -1
    while end >= 0:
        if path[:end] in mounts:
            return path[:end]
        end = path.rfind("/", 0, end)
    return None
