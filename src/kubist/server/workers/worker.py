"""A worker: one of several server processes on a port, with the store of the store process, or on etcd.

A request waits until this process has seen all writes that any worker answered before, so clients see one
consistent server.
"""

from __future__ import annotations

import asyncio
import dataclasses
import math
import os
import signal
import socket
from dataclasses import dataclass

from kubist.api.config import Config
from kubist.api.resources.context import User
from kubist.base.http.messages import Answer, Application, Request
from kubist.errors import StartError
from kubist.model.meta import status
from kubist.server.runtime.run import attempt
from kubist.server.server import Server, make_store
from kubist.server.workers.child import Peers, Pipes
from kubist.storage.cache.cache import Cache
from kubist.storage.remote.client import RemoteStore
from kubist.storage.remote.ipc import SharedRevision

CATCH_UP_SECONDS = 1.0


@dataclass(slots=True, frozen=True)
class WorkerResources:
    """Resources of one worker."""

    first: bool
    """The first worker does the work that only one worker may do (controllers, CRDs, repairs)."""
    listener: socket.socket
    peers: Peers
    store: str
    """Socket path of the store process; empty on etcd."""
    revision: SharedRevision


class Worker(Server):
    def __init__(self, config: Config, resources: WorkerResources, pipes: Pipes) -> None:
        store = RemoteStore(resources.store, resources.revision) if resources.store else make_store(config)
        super().__init__(share(config), store=store, chores=resources.first)
        self._resources = resources
        self._pipes = pipes
        self.api.metrics.others = resources.peers.ask
        if config.test_bench:
            self.api.paths.control = _refuse_control

    async def start(self, *, sock: socket.socket | None = None) -> None:
        asyncio.get_running_loop().add_reader(self._pipes.cut, self._stop_by_signal)
        await self._resources.peers.start(self.api.metrics.own)
        await super().start(sock=sock or self._resources.listener)

    def _stop_by_signal(self) -> None:
        asyncio.get_running_loop().remove_reader(self._pipes.cut)
        os.kill(os.getpid(), signal.SIGTERM)

    async def stop(self, grace: float = 10.0) -> None:
        await super().stop(grace)
        await self._resources.peers.stop()

    def _application(self) -> Application:
        return (
            WaitForCache(self.api, self.registry.cache, self._resources.revision)
            if self._resources.store
            else self.api
        )


class WaitForCache:
    """Delays requests until the cache contains all writes that were answered before they arrived."""

    def __init__(self, application: Application, cache: Cache, newest: SharedRevision) -> None:
        self._application = application
        self._cache = cache
        self._newest = newest

    async def __call__(self, request: Request) -> Answer:
        newest = self._newest.value
        if newest > self._cache.revision:
            # Continues after CATCH_UP_SECONDS even if the store process is down. Requests that need newer
            # data fail later.
            await self._cache.wait(newest, CATCH_UP_SECONDS)
        return await self._application(request)


async def _refuse_control(_request: Request, _path: str, _user: User) -> Answer:
    """Answers requests for the control API, which workers do not have."""
    raise status.APIError(
        409,
        "Conflict",
        "there is no test bench with --workers, because it controls one process: use one worker",
    )


def share(config: Config) -> Config:
    """Configuration of one worker: an equal share of the in-flight limits. The test bench is off, because it
    controls one process."""
    return dataclasses.replace(
        config,
        test_bench=False,
        max_requests_inflight=math.ceil(config.max_requests_inflight / config.workers),
        max_mutating_requests_inflight=math.ceil(config.max_mutating_requests_inflight / config.workers),
    )


def work(config: Config, resources: WorkerResources, pipes: Pipes) -> StartError | None:
    """Main function of a worker. Returns the error if it failed."""
    return attempt(lambda: Worker(config, resources, pipes), lambda _: pipes.ready())
