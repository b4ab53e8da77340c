"""One cluster: its server while it is loaded, its open streams, and its requests in progress."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextvars import Context
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from kubist.api.config import Config
from kubist.base.clock import CURRENT, Clock
from kubist.base.http.messages import Answer, Request, Stream, StreamWriter
from kubist.model.meta import status
from kubist.model.meta.object import Object
from kubist.model.meta.times import format_time
from kubist.server.clusters import credentials, logical_server
from kubist.server.clusters.limits import LimitedStore, Rate, RequestTurns
from kubist.server.clusters.logical_server import LogicalServer
from kubist.server.clusters.spec import DISK, Record, Source
from kubist.storage.memory import MemoryStore
from kubist.storage.sqlite.file import write_database
from kubist.storage.sqlite.store import SqliteStore
from kubist.storage.store import Store
from kubist.testbench.bench import Bench

log = logging.getLogger("kubist.clusters")

GROUP, RESOURCE = "kubist.io", "clusters"
DATABASE = "kubist.db"
STEP = 0.01
GRACE_STEPS = 20
"""A stopping cluster waits for its requests for at most `STEP * GRACE_STEPS` seconds."""
_CONNECTION = "clusters"
"""Key of the state that clusters keep with a connection."""


@dataclass(frozen=True, slots=True)
class Host:
    """The server whose socket the clusters share."""

    config: Config
    port: int
    clock: Clock
    bench: Bench
    url: str
    """Address at which clients on this machine reach it."""


class _OpenStream:
    """Response that is being streamed, such as a watch."""

    __slots__ = ("writer",)

    def __init__(self) -> None:
        self.writer: StreamWriter | None = None


class Cluster:
    """A cluster below /clusters/NAME."""

    def __init__(
        self, host: Host, record: Record, directory: Path, token: str, loaded: Callable[[Cluster], None]
    ) -> None:
        """`loaded` is called whenever the server has been loaded."""
        self._host = host
        self._loaded = loaded
        self.record = record
        self.directory = directory
        self.token = token
        self.server: LogicalServer | None = None
        self.is_deleted = False
        self.has_clients = False
        """Whether a client has authenticated since the server was loaded."""
        self._moving: asyncio.Task[Any] | None = None
        """Task that loads or unloads the server."""
        self._turns = RequestTurns()
        limit = record.limits.requests_per_second
        self._rate = Rate(limit) if limit else None
        self._requests = 0
        self._streams: set[_OpenStream] = set()
        self.used = host.clock.monotonic()
        """Time of the last request on the host's clock."""

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def is_busy(self) -> bool:
        return bool(self._requests or self._streams or self._moving)

    @property
    def can_unload(self) -> bool:
        """Whether unloading would lose nothing."""
        if self.server is None or self.record.storage != DISK or self.is_busy:
            return False
        # A moved clock, for example, would be lost.
        return self.server.bench is None or not self.server.bench.is_in_use

    async def answer(self, request: Request, path: str) -> Answer:
        """Response to a request for a path below the cluster's own. Loads the cluster if needed."""
        if self._rate is not None and (seconds := self._rate.take()):
            limit = self.record.limits.requests_per_second
            raise status.too_many_requests(
                f"the cluster {self.name} has a limit of {limit} requests per second", seconds
            )
        self._requests += 1
        try:
            if (turn := self._turns.take()) is not None:
                await turn
            server = self.server or await self.running()
            CURRENT.set(server.api.clock)
            request.path = path
            request.connection = self._connection_state(request)
            answer = await server.application(request)
        finally:
            self._requests -= 1
            self.used = self._host.clock.monotonic()
            if request.is_authenticated:
                self.has_clients = True
        if isinstance(answer, Stream):
            self._follow(answer)
        return answer

    def _connection_state(self, request: Request) -> dict[str, object]:
        """State that this cluster keeps with the client's connection. It holds decisions about client certificates, so
        clusters must not share it."""
        states: WeakKeyDictionary[Cluster, dict[str, object]]
        states = request.connection.setdefault(_CONNECTION, WeakKeyDictionary())  # type: ignore[assignment]
        return states.setdefault(self, {})

    def _follow(self, stream: Stream) -> None:
        """Tracks a stream until it ends."""
        open_ = _OpenStream()
        self._streams.add(open_)
        start, stopped = stream.start, stream.stopped

        def begin(writer: StreamWriter) -> None:
            open_.writer = writer
            start(writer)

        def end() -> None:
            self._streams.discard(open_)
            self.used = self._host.clock.monotonic()
            stopped()

        stream.start, stream.stopped = begin, end

    async def running(self) -> LogicalServer:
        """The server, loaded if needed. Raises 404 if the cluster was deleted meanwhile."""
        while self.server is None:
            if self.is_deleted:
                raise status.not_found(GROUP, RESOURCE, self.name)
            moving = self._moving
            if moving is None or moving.done():  # `_moved` comes a turn of the event loop later
                moving = self._move(self._load())
            await asyncio.shield(moving)
        return self.server

    async def _load(self) -> None:
        self.has_clients = False
        await self._start(SqliteStore(str(self.directory / DATABASE)))
        log.info("loaded the cluster %s", self.name)

    def _move(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Runs work that changes `server`. The task has its own context, because the server's tasks inherit it."""
        task = self._moving = asyncio.create_task(work, context=Context())
        task.add_done_callback(self._moved)
        return task

    def _moved(self, task: asyncio.Task[None]) -> None:
        if self._moving is task:
            self._moving = None
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("the cluster %s cannot be loaded: %s", self.name, error)

    async def create(self, source: Source) -> None:
        """Starts the server of a new cluster."""
        self.has_clients = True
        if self.record.storage == DISK:
            database = self.directory / DATABASE
            await asyncio.to_thread(write_database, database, source.store)
            work = self._start(SqliteStore(str(database)), source)
        else:
            work = self._start(MemoryStore(image=source.store), source)
        await asyncio.create_task(work, context=Context())

    async def _start(self, store: Store, source: Source | None = None) -> None:
        record, host = self.record, self._host
        if record.limits.objects or record.limits.bytes:
            store = LimitedStore(store, record.name, record.limits)
        settings = credentials.settings(self.directory)
        if record.storage == DISK:
            settings["data_dir"] = str(self.directory)
        config = logical_server.configuration(host.config, host.port, record, settings)
        server = LogicalServer(config, store, source)
        await server.start_behind(host.port)
        if server.bench is not None:
            server.bench.changed()  # its clock may be moved already
        self.server = server
        self.used = host.clock.monotonic()
        self._loaded(self)

    async def unload(self) -> None:
        """Stops the server and keeps the files."""
        server = self.server
        if server is None or not self.can_unload:
            return
        self.server = None
        await asyncio.shield(self._move(server.stop(0.0)))
        log.info("unloaded the cluster %s", self.name)

    async def close(self) -> None:
        """Ends all streams and stops the server permanently."""
        self.is_deleted = True
        if self._moving is not None:
            await asyncio.wait([self._moving])
        server = self.server
        if server is None:
            return
        server.ready, server.stopping = False, True
        self._end_streams()
        for _ in range(GRACE_STEPS):
            if not self._requests:
                break
            await asyncio.sleep(STEP)
            self._end_streams()
        self.server = None
        await asyncio.create_task(server.stop(0.0), context=Context())

    def _end_streams(self) -> None:
        for open_ in list(self._streams):
            if open_.writer is not None:
                open_.writer.close()

    def kubeconfig(self, host: str, ca: bytes) -> Object:
        """Kubeconfig of the administrator, for clients that reach the host at the address `host`."""
        url = (f"https://{host}" if host else self._host.url) + logical_server.prefix(self.name)
        return credentials.kubeconfig(self.name, url, ca, self.token)

    def to_json(self) -> Object:
        """The cluster as the control API shows it."""
        record = self.record
        state = "Running" if self.server is not None else "Unloaded"
        info: Object = {
            "name": record.name,
            "uid": record.uid,
            "path": logical_server.prefix(record.name),
            "state": state,
            "storage": record.storage,
            "created": format_time(int(record.created)),
            "controllers": list(record.controllers),
            "workloads": record.workloads,
            "limits": record.limits.to_json(),
        }
        if record.expires is not None:
            info["expires"] = format_time(int(record.expires))
        return info
