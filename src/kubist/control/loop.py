"""A control loop: follows collections of the cache, and brings what changed into the state it should be in.

A loop holds nothing that it could not find out again: it may be stopped anywhere and started elsewhere.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, ClassVar

from kubist.control.queue import Queue
from kubist.meta.status import APIError
from kubist.storage.cache import Change, Collection, Entry
from kubist.storage.store import StoreError

if TYPE_CHECKING:
    from kubist.config import Config
    from kubist.control.client import Client

Object = dict[str, Any]
log = logging.getLogger("kubist.control")


class Loop:
    """What all loops have in common. One says what it follows in `follow` and what it does in `reconcile`."""

    name: ClassVar[str]
    workers: ClassVar[int] = 1
    """How many keys are worked on at a time."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.config: Config = client.config
        self.queue: Queue[Any] = Queue(self._arrived)
        self._followed: list[tuple[Collection, object]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._running = False
        self._busy = 0

    def follow(self) -> None:
        """Say what to watch, by `watch`. What there is already is told first."""

    async def reconcile(self, key: Any) -> None:
        """Look at the state of things about `key` and take the next steps. Whatever is raised: it comes again."""

    def start(self) -> None:
        self._running = True
        self.follow()

    def _arrived(self) -> None:
        """There is work: have somebody do it. A loop without work costs nothing."""
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

    def watch(self, resource: str, changed: Callable[[Change], None], *, group: str = "") -> None:
        """Be told of all objects of a kind, and of every change from now on."""
        collection = self.client.collection(resource, group=group)

        def deliver(changes: list[Change]) -> None:
            for change in changes:
                try:
                    changed(change)
                except Exception:
                    log.exception("%s: cannot make sense of %s", self.name, entry_of(change).key)

        deliver([Change(entry.revision, None, entry) for entry in collection.entries.values()])
        token = object()
        collection.subscribe(token, deliver)
        self._followed.append((collection, token))

    def enqueue(self, change: Change) -> None:
        """For `watch`: the changed object's (namespace, name) is the key."""
        entry = entry_of(change)
        self.queue.add((entry.namespace, entry.name))

    def enqueue_soon(self, key: Any, collection: Collection) -> None:
        """For keys that stand for many objects: the more there are, the more changes are looked at together."""
        self.queue.add_after(key, min(len(collection.entries) * 2e-4, 0.2))

    async def _work(self) -> None:
        try:
            while (key := self.queue.next()) is not None:
                await self._attend(key)
                await asyncio.sleep(0)
        finally:
            self._busy -= 1

    async def _attend(self, key: Any) -> None:
        failed = True
        try:
            # What this loop has written itself must be seen, or it would be done twice.
            await self.client.registry.cache.catch_up()
            await self.reconcile(key)
            failed = False
        except (APIError, StoreError) as error:
            log.info("%s: %s: %s", self.name, shown(key), error)
        except Exception:
            log.exception("%s: %s", self.name, shown(key))
        finally:
            self.queue.done(key, failed=failed)


def entry_of(change: Change) -> Entry:
    entry = change.new or change.old
    assert entry is not None
    return entry


def shown(key: Hashable) -> str:
    return "/".join(str(part) for part in key if part) if isinstance(key, tuple) else str(key)


def controller_of(obj: Object) -> Object | None:
    """The reference to the object that manages this one."""
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            found: Object = reference
            return found
    return None
