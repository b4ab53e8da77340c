"""Remote store and its owner in one event loop."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path

from kubist.storage.remote.client import RemoteStore
from kubist.storage.remote.ipc import SharedRevision
from kubist.storage.remote.server import StoreServer
from kubist.storage.sqlite.store import SqliteStore


class Owner:
    """Owner of the database in a directory. It can be stopped and restarted."""

    def __init__(self, directory: Path, *, history: float = 300.0) -> None:
        self.shared = SharedRevision()
        self.path = f"/tmp/kubist-{os.urandom(8).hex()}.sock"  # A path below `directory` may be too long.
        self._database = str(directory / "kubist.db")
        self._history = history

    async def start(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        sock = socket.socket(socket.AF_UNIX)
        sock.bind(self.path)
        self.store = SqliteStore(self._database, history=self._history)
        await self.store.open()
        self.server = StoreServer(self.store, self.shared)
        await self.server.start(sock)

    async def stop(self) -> None:
        await self.server.stop()
        await self.store.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)

    def user(self) -> RemoteStore:
        return RemoteStore(self.path, self.shared)


class OwnedStore(RemoteStore):
    """Remote store that starts its own owner."""

    def __init__(self, directory: Path) -> None:
        self.owner = Owner(directory)
        super().__init__(self.owner.path, self.owner.shared)

    async def open(self) -> None:
        await self.owner.start()
        await super().open()

    async def close(self) -> None:
        await super().close()
        await self.owner.stop()
