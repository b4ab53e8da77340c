"""Base class of controllers: watches collections of the cache and reconciles changed keys.

A controller keeps no state that it cannot rebuild. It may be stopped at any time and started on another
server.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, ClassVar

from kubist.api.object_client import CONTROLLER_MANAGER, Actor, ObjectClient
from kubist.cluster.control.events import EventRecorder
from kubist.cluster.control.queue import Queue
from kubist.model.meta.object import Object
from kubist.model.meta.status import APIError
from kubist.model.meta.times import format_time
from kubist.storage.cache.cache import Change, Collection, Entry
from kubist.storage.store import StoreError

if TYPE_CHECKING:
    from kubist.api.config import Config

log = logging.getLogger("kubist.control")


class Loop:
    """A controller. Subclasses define the watches in `follow` and the work in `reconcile`."""

    name: ClassVar[str]
    component: ClassVar[str] = ""
    """Name in the Events that the controller records, such as deployment-controller."""
    actor: ClassVar[Actor] = CONTROLLER_MANAGER
    """User and field manager of its writes."""
    workers: ClassVar[int] = 1
    """Number of keys that are reconciled concurrently."""

    def __init__(self, client: ObjectClient) -> None:
        self.client = client.acting_as(self.actor)
        self.clock = client.clock
        self.config: Config = client.config
        self.events = EventRecorder(self.client, self.clock, self.component or self.name)
        self.queue: Queue[Any] = Queue(self._start_worker, self.clock)
        self._followed: list[tuple[Collection, object]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._running = False
        self._busy = 0

    def follow(self) -> None:
        """Registers watches with `watch`. Existing objects are delivered first."""

    async def reconcile(self, key: Any) -> None:
        """Reconciles one key. After any exception the key is retried with backoff."""

    def start(self) -> None:
        self._running = True
        self.follow()

    def _start_worker(self) -> None:
        """Starts a worker if there is a free one. A controller without work has no running task."""
        if self._running and self._busy < self.workers:
            self._busy += 1
            task = asyncio.ensure_future(self._work())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        self._running = False
        for collection, token in self._followed:
            collection.unsubscribe(token)
        self._followed.clear()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.queue.close()
        await self.events.close()

    def stamp(self) -> str:
        """Current time as objects show it."""
        return format_time(int(self.clock.now()))

    def watch(self, resource: str, changed: Callable[[Change], None], *, group: str = "") -> None:
        """Calls `changed` for all objects of a resource, and for every later change."""
        collection = self.client.collection(resource, group=group)

        def deliver(changes: list[Change]) -> None:
            for change in changes:
                try:
                    changed(change)
                except Exception:
                    log.exception("%s: cannot handle a change of %s", self.name, entry_of(change).key)

        deliver([Change(entry.revision, None, entry) for entry in collection.entries.values()])
        token = object()
        collection.subscribe(token, deliver)
        self._followed.append((collection, token))

    def enqueue(self, change: Change) -> None:
        """Callback for `watch`: the key is (namespace, name) of the changed object."""
        entry = entry_of(change)
        self.queue.add((entry.namespace, entry.name))

    def enqueue_soon(self, key: Any, collection: Collection) -> None:
        """Queues a key that stands for many objects. The delay grows with their number (at most 0.2 s) to
        batch changes."""
        self.queue.add_soon(key, min(len(collection.entries) * 2e-4, 0.2))

    async def _work(self) -> None:
        try:
            while (key := self.queue.next()) is not None:
                await self._reconcile_key(key)
                await asyncio.sleep(0)
        finally:
            self._busy -= 1

    async def _reconcile_key(self, key: Any) -> None:
        failed = True
        try:
            # The cache must contain the controller's own writes; otherwise it would repeat them.
            await self.client.registry.cache.catch_up()
            await self.reconcile(key)
            failed = False
        except (APIError, StoreError) as error:
            log.info("%s: %s: %s", self.name, format_key(key), error)
        except Exception:
            log.exception("%s: %s", self.name, format_key(key))
        finally:
            self.queue.done(key, failed=failed)


def entry_of(change: Change) -> Entry:
    entry = change.new or change.old
    assert entry is not None
    return entry


def format_key(key: Hashable) -> str:
    return "/".join(str(part) for part in key if part) if isinstance(key, tuple) else str(key)


def controller_of(obj: Object) -> Object | None:
    """The ownerReference with `controller: true`, or None."""
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            controller: Object = reference
            return controller
    return None
