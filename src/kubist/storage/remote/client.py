"""Client for the store of the owner process on this machine. Each worker uses one.

One feed carries every change and serves all watches of this process. The current revision is in shared memory.
After a restart of the owner, the outcome of unanswered writes is unknown; reads and watches continue.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from kubist.base import eager_task
from kubist.storage.hub import Hub
from kubist.storage.remote import ipc
from kubist.storage.remote.ipc import SharedRevision
from kubist.storage.store import Batch, KeyValue, OpenFailed, Scan, Unavailable

OPEN_SECONDS = 10.0
OWNER_TIMEOUT = 5.0
"""Seconds that a request waits while the owner process restarts."""
RETRY_SECONDS = 0.02
AWAY = "the store process does not respond"


class _Lost(Exception):
    """The connection ended before the response arrived."""


class RemoteStore:
    """`Store` that sends requests over the Unix socket at `path`."""

    local = True

    def __init__(self, path: str, shared: SharedRevision) -> None:
        self._path = path
        self._shared = shared
        self._hub = Hub()
        self._following = False
        """Whether the hub has received its first revision. After a reconnect it then requests the changes it
        missed."""
        self._open = False

    async def open(self) -> None:
        self._connected = asyncio.Event()
        self._frames: ipc.Frames | None = None
        self._pending: dict[int, asyncio.Future[Any]] = {}
        self._count = ipc.FEED
        self._open = True
        self._give_up_timer = asyncio.get_running_loop().call_later(0.0, lambda: None)
        self._keeper = asyncio.create_task(self._keep_connected())
        try:
            async with eager_task.timeout(OPEN_SECONDS):
                await self._connected.wait()
        except TimeoutError:
            await self.close()
            raise OpenFailed(f"no store process listens on {self._path}") from None

    async def close(self) -> None:
        if not self._open:
            return
        self._open = False
        self._give_up_timer.cancel()
        self._keeper.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._keeper
        if self._frames is not None:
            self._frames.close()
        self._settle()
        self._hub.fail("the store is closed")

    async def revision(self) -> int:
        return self._shared.value

    async def check(self) -> None:
        await self._repeat("check")

    async def request_progress(self) -> None:
        self._hub.expect_progress(0.0)

    async def get(self, key: str, revision: int = 0) -> KeyValue | None:
        return ipc.key_value(await self._repeat("get", key, revision))

    async def scan(self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0) -> Scan:
        return ipc.read_scan(await self._repeat("scan", prefix, start, limit, revision))

    async def create(self, key: str, value: bytes, *, ttl: int = 0) -> int:
        return int(await self._once("create", key, value, ttl))

    async def update(self, key: str, value: bytes, expected: int, *, ttl: int = 0) -> int:
        return int(await self._once("update", key, value, expected, ttl))

    async def delete(self, key: str, expected: int) -> int:
        return int(await self._once("delete", key, expected))

    async def compact(self, revision: int) -> None:
        await self._repeat("compact", revision)

    def watch(self, prefix: str, after: int) -> AsyncIterator[Batch]:
        return self._hub.watch(prefix, after, self._replay)

    async def _replay(self, prefix: str, after: int, target: int) -> AsyncIterator[Batch]:
        self._check_open()
        if not self._connected.is_set():
            await self._wait()
        if after >= target:
            yield Batch(target, ())
        while after < target:
            after, rows = await self._repeat("replay", prefix, after)
            yield Batch(after, tuple(ipc.read_events(rows)))

    # Requests

    async def _once(self, *request: Any) -> Any:
        try:
            return await self._ask(*request)
        except _Lost:
            raise Unavailable("the store process ended before it responded") from None

    async def _repeat(self, *request: Any) -> Any:
        """Sends a request again if the connection was lost, so it must be safe to run twice."""
        while True:
            try:
                return await self._ask(*request)
            except _Lost:
                continue

    async def _ask(self, *request: Any) -> Any:
        self._check_open()
        if not self._connected.is_set():
            await self._wait()
        assert self._frames is not None
        self._count += 1
        answer = self._pending[self._count] = asyncio.get_running_loop().create_future()
        self._frames.send(ipc.frame(self._count, *request))
        return await answer

    async def _wait(self) -> None:
        try:
            async with eager_task.timeout(OWNER_TIMEOUT):
                await self._connected.wait()
        except TimeoutError:
            raise Unavailable(AWAY) from None
        self._check_open()

    def _check_open(self) -> None:
        if not self._open:
            raise Unavailable("the store is closed")

    # The connection

    async def _keep_connected(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            lost = asyncio.Event()
            frames = ipc.Frames(self._received, lost.set)
            try:
                await loop.create_unix_connection(lambda frames=frames: frames, self._path)  # type: ignore[misc]
            except OSError:
                await asyncio.sleep(RETRY_SECONDS)
                continue
            self._frames = frames
            frames.send(ipc.frame(ipc.FEED, "feed", self._hub.revision if self._following else None))
            await lost.wait()
            self._connected.clear()
            self._settle()
            self._give_up_timer.cancel()
            self._give_up_timer = loop.call_later(OWNER_TIMEOUT, self._give_up)

    def _give_up(self) -> None:
        """Ends the watches because the owner is gone. They continue from their revision when it returns."""
        if not self._connected.is_set():
            self._hub.fail(AWAY)

    def _settle(self) -> None:
        """Fails all pending requests, because no response will come."""
        answers, self._pending = self._pending, {}
        for answer in answers.values():
            if not answer.done():
                answer.set_exception(_Lost() if self._open else Unavailable("the store is closed"))

    def _received(self, message: ipc.Message) -> None:
        number, kind, value = message
        if number == ipc.FEED:
            self._fed(kind, value)
            return
        answer = self._pending.pop(number)
        if answer.done():
            return
        if kind:
            answer.set_exception(ipc.read_failure(kind, value))
        else:
            answer.set_result(value)

    def _fed(self, kind: str, value: Any) -> None:
        if kind == "begin":
            # History before this revision was not published here. Watches must read it again.
            if self._following:
                self._hub.fail("the store process was away for longer than it keeps history")
            self._hub.revision = value
            self._following = True
        else:
            revision, rows = value
            if revision > self._hub.revision:
                self._hub.publish(revision, ipc.read_events(rows))
        if not self._connected.is_set():
            self._connected.set()
