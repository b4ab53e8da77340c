"""Files that simulated commands created on volumes: an emptyDir keeps them for the pod, a hostPath for the node."""

from __future__ import annotations

from kubist.meta.object import Object
from kubist.simulation.commands import file_scopes

MAX_FILES = 10_000
"""Maximum number of directories that are remembered."""


class Files:
    def __init__(self) -> None:
        self._kept: dict[str, set[str]] = {}
        """Paths below a directory, by the key of the directory."""

    def seen_by(self, pod: Object, container: Object) -> set[str]:
        """Paths that exist in a container that starts."""
        if not self._kept:
            return set()
        return {
            mount + path for mount, scope in file_scopes(pod, container) for path in self._kept.get(scope, ())
        }

    def keep(self, pod: Object, container: Object, paths: set[str]) -> None:
        """Remembers the files of a container that are on volumes."""
        scopes = file_scopes(pod, container)
        for path in paths:
            for mount, scope in scopes:
                if path.startswith(f"{mount}/"):
                    if len(self._kept) >= MAX_FILES:
                        self._kept.clear()
                    self._kept.setdefault(scope, set()).add(path[len(mount) :])
                    break

    def forget(self, uid: str) -> None:
        """Forgets the files of a pod."""
        if uid and self._kept:
            for scope in [scope for scope in self._kept if scope.startswith(f"pod/{uid}/")]:
                del self._kept[scope]
