"""Snapshots of a cluster: in memory, and named ones on its disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kubist.api.object_store.content import read_content, restore_content, restore_file
from kubist.api.object_store.registry import Registry
from kubist.model.meta.object import Object

Snapshot = dict[str, bytes]
"""Stored values by key."""

Request = Callable[..., Any]
PATH = "/kubist/v1/snapshots"


async def take(registry: Registry) -> Snapshot:
    return await read_content(registry)


async def restore(registry: Registry, taken: Snapshot | str | Path) -> None:
    """Restores a snapshot, or the file of one or of `kubist backup`. Raises OpenFailed for an unusable file."""
    if isinstance(taken, dict):
        await restore_content(registry, taken)
    else:
        await restore_file(registry, Path(taken))


class ClusterSnapshots:
    """Named snapshots of a cluster. Each method returns descriptions as the control API has them."""

    def __init__(self, request: Request) -> None:
        self._request = request

    def save(self, name: str) -> Object:
        """Saves the content of the cluster under a new name."""
        return self._object("POST", "", {"name": name})

    def restore(self, name: str) -> Object:
        """Makes a snapshot the content of the cluster. Watchers see the changes."""
        return self._object("POST", f"/{quote(name, safe='')}/restore")

    def get(self, name: str) -> Object:
        return self._object("GET", f"/{quote(name, safe='')}")

    def list(self) -> list[Object]:
        """All snapshots, in order of their names."""
        items: list[Object] = self._object("GET", "")["items"]
        return items

    def delete(self, name: str) -> Object:
        return self._object("DELETE", f"/{quote(name, safe='')}")

    def _object(self, method: str, path: str, body: Object | None = None) -> Object:
        answer: Object = self._request(method, PATH + path, body)
        return answer
