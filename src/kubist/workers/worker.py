"""One of several processes that serve a port: a server on a store that another process owns, or on etcd.

A request begins when this process has seen everything that any of them had answered before, so a client cannot tell
how many there are.
"""

from __future__ import annotations

import asyncio
import dataclasses
import math
import os
import signal
import socket
from dataclasses import dataclass

from kubist.config import Config
from kubist.http.messages import Answer, Application, Request
from kubist.runtime.run import attempt
from kubist.server import Server, make_store
from kubist.storage.cache import Cache
from kubist.storage.remote import RemoteStore
from kubist.storage.shared import SharedRevision
from kubist.workers.child import Leash
from kubist.workers.peers import Peers

CATCH_UP_SECONDS = 1.0


@dataclass(slots=True, frozen=True)
class Post:
    """What one worker is given."""

    first: bool
    """It does what only one of them does."""
    listener: socket.socket
    peers: Peers
    store: str
    """The socket of the store's owner; empty on etcd."""
    revision: SharedRevision


class Worker(Server):
    def __init__(self, config: Config, post: Post, leash: Leash) -> None:
        store = RemoteStore(post.store, post.revision) if post.store else make_store(config)
        super().__init__(share(config), store=store, chores=post.first)
        self._post = post
        self._leash = leash
        self.api.metrics.others = post.peers.ask

    async def start(self, *, sock: socket.socket | None = None) -> None:
        asyncio.get_running_loop().add_reader(self._leash.cut, self._let_go)
        await self._post.peers.start(self.api.metrics.own)
        await super().start(sock=sock or self._post.listener)

    def _let_go(self) -> None:
        asyncio.get_running_loop().remove_reader(self._leash.cut)
        os.kill(os.getpid(), signal.SIGTERM)

    async def stop(self, grace: float = 10.0) -> None:
        await super().stop(grace)
        await self._post.peers.stop()

    def _application(self) -> Application:
        return UpToDate(self.api, self.registry.cache, self._post.revision) if self._post.store else self.api


class UpToDate:
    """Puts requests off until the cache has what was answered elsewhere before they came."""

    def __init__(self, application: Application, cache: Cache, newest: SharedRevision) -> None:
        self._application = application
        self._cache = cache
        self._newest = newest

    async def __call__(self, request: Request) -> Answer:
        newest = self._newest.value
        if newest > self._cache.revision:
            # Who needs more than this process can know while the owner of the store is away will find out.
            await self._cache.wait(newest, CATCH_UP_SECONDS)
        return await self._application(request)


def share(config: Config) -> Config:
    """The configuration of one of the workers: each takes its part of the requests that may be under way."""
    return dataclasses.replace(
        config,
        max_requests_inflight=math.ceil(config.max_requests_inflight / config.workers),
        max_mutating_requests_inflight=math.ceil(config.max_mutating_requests_inflight / config.workers),
    )


def work(config: Config, post: Post, leash: Leash) -> str | None:
    """The life of a worker."""
    return attempt(lambda: Worker(config, post, leash), lambda _: leash.ready())
