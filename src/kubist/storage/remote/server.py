"""Server for a store: other processes send requests over a Unix socket and receive every change.

The changes of one transaction are encoded once for all connections. The shared revision is raised before any
process learns of a change by a response or by the feed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Coroutine
from typing import Any

from kubist.base import eager_task
from kubist.storage.remote import ipc
from kubist.storage.remote.ipc import SharedRevision
from kubist.storage.store import Batch, Compacted, Store, Unavailable

log = logging.getLogger("kubist.storage")


class StoreServer:
    """Serves an open `store` on a listening Unix socket."""

    def __init__(self, store: Store, shared: SharedRevision) -> None:
        self.store = store
        self.shared = shared
        self._connections: set[_Connection] = set()
        self._quiet = asyncio.Event()
        self._listener: asyncio.Server | None = None
        self._last: tuple[Batch, bytes] | None = None

    async def start(self, sock: socket.socket) -> None:
        self.shared.reach(await self.store.revision())
        self._listener = await asyncio.get_running_loop().create_unix_server(
            lambda: _Connection(self).frames, sock=sock
        )

    async def stop(self, grace: float = 0.0) -> None:
        """Stops accepting connections. Connected processes have `grace` seconds to disconnect."""
        if self._listener is not None:
            self._listener.close()
        with contextlib.suppress(TimeoutError):
            async with eager_task.timeout(grace):
                while self._connections:
                    self._quiet.clear()
                    await self._quiet.wait()
        for connection in list(self._connections):
            connection.frames.close()
            await connection.end()

    def joined(self, connection: _Connection) -> None:
        self._connections.add(connection)

    def left(self, connection: _Connection) -> None:
        self._connections.discard(connection)
        self._quiet.set()

    def encoded(self, batch: Batch) -> bytes:
        if self._last is None or self._last[0] is not batch:
            self._last = batch, ipc.frame(ipc.FEED, "events", ipc.batch(batch))
        return self._last[1]


class _Connection:
    """Connection of one process that uses the store."""

    def __init__(self, server: StoreServer) -> None:
        self._server = server
        self._store = server.store
        self._loop = asyncio.get_running_loop()
        self.frames = ipc.Frames(self._asked, self._lost)
        self._tasks: set[asyncio.Task[None]] = set()
        server.joined(self)

    def _asked(self, message: ipc.Message) -> None:
        number, verb, *arguments = message
        if verb == "feed":
            self._spawn(self._feed(*arguments))
        else:
            self._spawn(self._answer(number, getattr(self, f"_{verb}")(*arguments)))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _lost(self) -> None:
        """Cancels the tasks of a lost connection. Writes that are already queued still happen."""
        for task in self._tasks:
            task.cancel()
        self._server.left(self)

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _answer(self, number: int, work: Coroutine[Any, Any, Any]) -> None:
        try:
            answer = ipc.frame(number, "", await work)
        except Exception as error:
            answer = ipc.frame(number, *ipc.failure(error))
        self.frames.send(answer)

    async def _check(self) -> None:
        await self._store.check()

    async def _get(self, key: str, revision: int) -> ipc.Pair | None:
        return ipc.pair(await self._store.get(key, revision))

    async def _scan(self, prefix: str, start: str, limit: int, revision: int) -> ipc.Message:
        return ipc.scan(await self._store.scan(prefix, start=start, limit=limit, revision=revision))

    async def _create(self, key: str, value: bytes, ttl: int) -> int:
        return self._written(await self._store.create(key, value, ttl=ttl))

    async def _update(self, key: str, value: bytes, expected: int, ttl: int) -> int:
        return self._written(await self._store.update(key, value, expected, ttl=ttl))

    async def _delete(self, key: str, expected: int) -> int:
        return self._written(await self._store.delete(key, expected))

    def _written(self, revision: int) -> int:
        self._server.shared.reach(revision)
        return revision

    async def _compact(self, revision: int) -> None:
        await self._store.compact(revision)

    async def _replay(self, prefix: str, after: int) -> ipc.Message:
        """Next page of history."""
        async with contextlib.aclosing(self._store.watch(prefix, after)) as batches:  # type: ignore[type-var]
            async for batch in batches:
                return ipc.batch(batch)
        raise Unavailable("the store is closed")

    async def _feed(self, after: int | None) -> None:
        """Sends every change after a revision, or from now on if `after` is None."""
        shared = self._server.shared
        while self.frames.open:
            try:
                position = await self._store.revision() if after is None else after
                if after is None:
                    self.frames.send(ipc.frame(ipc.FEED, "begin", position))
                async for batch in self._store.watch("", position):
                    shared.reach(batch.revision)
                    self.frames.send(self._server.encoded(batch))
                    await self.frames.drained()
            except Compacted:
                after = None
            except Unavailable as error:
                log.info("the change feed of a worker ended: %s", error)
                return
