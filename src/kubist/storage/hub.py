"""Hub: distributes the changes of a store, in revision order, to the watches of this process.

A store publishes each commit once. The hub assigns its events to watches by prefix. This module may import
`store` only.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence

from kubist.storage.store import Batch, Event, Unavailable

QUEUED_EVENTS = 4096
"""Maximum unread events of one watch. On overflow the queue is dropped and the watch reads history instead."""

PROGRESS_INTERVAL = 0.1
"""Seconds after which a watch without events receives the current revision."""

Replay = Callable[[str, int, int], AsyncIterator[Batch]]
"""`replay(prefix, after, target)`: history in (after, target]. At least one Batch; the last one is at `target`
or later."""


class Subscription:
    """Queue of one watch: batches that are published and not yet read."""

    __slots__ = ("_batches", "_failure", "_limit", "_overflowed", "_queued", "_waiter", "revision")

    def __init__(self, revision: int, limit: int) -> None:
        self.revision = revision
        self._batches: deque[Batch] = deque()
        self._queued = 0
        self._limit = limit
        self._overflowed = False
        self._failure: str | None = None
        self._waiter: asyncio.Future[None] | None = None

    def push(self, batch: Batch) -> None:
        self.revision = batch.revision
        if self._overflowed:
            return
        batches = self._batches
        self._queued += len(batch.events)
        if self._queued > self._limit and batches:
            batches.clear()
            self._overflowed = True
        elif not batch.events and batches and not batches[-1].events:
            batches[-1] = batch
        else:
            batches.append(batch)
        self._wake()

    def fail(self, reason: str) -> None:
        self._failure = reason
        self._wake()

    async def next(self) -> Batch | None:
        """Next batch. None if batches were dropped because the reader was too slow."""
        while True:
            if self._batches:
                batch = self._batches.popleft()
                self._queued -= len(batch.events)
                return batch
            if self._overflowed:
                return None
            if self._failure is not None:
                raise Unavailable(self._failure)
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Hub:
    """All watches of a store in this process. `revision` is the last published revision."""

    def __init__(self, *, limit: int = QUEUED_EVENTS) -> None:
        self.revision = 0
        self._limit = limit
        self._by_prefix: dict[str, list[Subscription]] = {}
        self._lengths: list[int] = []
        self._timer: asyncio.Handle | None = None
        self._due = 0.0
        """Loop time at which the timer fires. uvloop's handle of a 0-second timer does not know it."""

    def publish(self, revision: int, events: Sequence[Event]) -> None:
        """Publishes all changes after `self.revision` up to and including `revision`."""
        self.revision = revision
        by_prefix, lengths = self._by_prefix, self._lengths
        if not by_prefix:
            return
        groups: dict[str, list[Event]] = {}
        for event in events:
            key = event.key
            for length in lengths:
                if length > len(key):
                    break
                prefix = key[:length]
                if prefix in by_prefix:
                    groups.setdefault(prefix, []).append(event)
        for prefix, below in groups.items():
            batch = Batch(revision, tuple(below))
            for subscription in by_prefix[prefix]:
                subscription.push(batch)
        self.expect_progress(PROGRESS_INTERVAL)

    def expect_progress(self, within: float) -> None:
        """Sends the revision to watches without events of their own, within `within` seconds."""
        loop = asyncio.get_running_loop()
        due = loop.time() + within
        if self._timer is not None:
            if self._due <= due:
                return
            self._timer.cancel()
        self._due = due
        self._timer = loop.call_later(within, self._progress)

    def _progress(self) -> None:
        self._timer = None
        progress = Batch(self.revision, ())
        for subscriptions in self._by_prefix.values():
            for subscription in subscriptions:
                if subscription.revision < progress.revision:
                    subscription.push(progress)

    def fail(self, reason: str) -> None:
        """Ends every watch with `Unavailable(reason)`."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for subscriptions in self._by_prefix.values():
            for subscription in subscriptions:
                subscription.fail(reason)

    async def watch(self, prefix: str, after: int, replay: Replay) -> AsyncIterator[Batch]:
        """Yields history from `replay`, then published batches without a gap. Replays again if the reader was
        too slow."""
        position = after
        while True:
            subscription = self._subscribe(prefix)
            try:
                async for batch in replay(prefix, position, self.revision):
                    yield batch
                    position = max(position, batch.revision)
                while (live := await subscription.next()) is not None:
                    if live.revision <= position:
                        continue
                    if live.events and live.events[0].revision <= position:
                        live = Batch(live.revision, tuple(e for e in live.events if e.revision > position))
                    yield live
                    position = live.revision
            finally:
                self._unsubscribe(prefix, subscription)

    def _subscribe(self, prefix: str) -> Subscription:
        subscription = Subscription(self.revision, self._limit)
        self._by_prefix.setdefault(prefix, []).append(subscription)
        self._lengths = sorted({len(prefix) for prefix in self._by_prefix})
        return subscription

    def _unsubscribe(self, prefix: str, subscription: Subscription) -> None:
        self._by_prefix[prefix].remove(subscription)
        if not self._by_prefix[prefix]:
            del self._by_prefix[prefix]
            self._lengths = sorted({len(prefix) for prefix in self._by_prefix})
