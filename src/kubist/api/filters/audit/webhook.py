"""Audit webhook: sends audit events in batches to the server of a kubeconfig. Requests never wait for it."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import orjson

from kubist.api.filters.audit.audit import Sink
from kubist.base import eager_task
from kubist.base.http.client.calls import CallFailed
from kubist.model.meta.object import Object

log = logging.getLogger("kubist.filters")

ATTEMPTS = 5
"""Attempts to send a batch."""
FACTOR, JITTER = 1.5, 0.2
"""Each wait before another attempt is FACTOR times as long as the last one, plus a random part of up to JITTER."""
IN_FLIGHT = 64
"""Maximum number of batches that are being sent. Further events wait in the buffer."""
BUFFER_BYTES = 64 << 20
"""Maximum size of the events that wait or are being sent. One event may hold megabytes of request and response."""
CLOSING_SECONDS = 10.0
"""Time to send the waiting events at shutdown."""
TRUNCATED = "audit.k8s.io/truncated"
_HEAD, _TAIL = b'{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[', b"]}"


class Sender(Protocol):
    """Server that receives the events (`filters.remote_review.RemoteReview`)."""

    async def send(self, body: bytes) -> None:
        """Posts a body. Raises CallFailed unless the response is a success."""
        ...

    async def close(self) -> None:
        """Closes idle connections."""
        ...


@dataclass(slots=True, frozen=True)
class WebhookSettings:
    """Flags `--audit-webhook-*`. Times are in seconds, sizes in bytes; a rate of 0 is no limit."""

    buffer_size: int = 10_000
    max_size: int = 400
    max_wait: float = 30.0
    throttle_qps: float = 10.0
    throttle_burst: int = 15
    initial_backoff: float = 10.0
    truncate_event: int = 0
    truncate_batch: int = 0
    """0: events and batches are never truncated."""


class AuditWebhook:
    """Buffers events and sends them in batches, from the event loop of the requests."""

    def __init__(self, sender: Sender, settings: WebhookSettings) -> None:
        self._sender = sender
        self._settings = settings
        self._events: deque[bytes] = deque()
        """Waiting events as JSON."""
        self._bytes = 0
        """Size of the events that wait or are being sent."""
        self._wake = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._runner: asyncio.Task[None] | None = None
        self._sending: set[asyncio.Task[None]] = set()
        self._closing = False
        self._dropped = 0
        self._tokens = float(settings.throttle_burst)
        self._refilled = 0.0

    def put(self, event: Object) -> None:
        """Adds an event to the buffer. A full buffer drops it."""
        encoded = self._encoded(event)
        if not encoded:
            return
        if len(self._events) >= self._settings.buffer_size or self._bytes + len(encoded) > BUFFER_BYTES:
            if not self._dropped:
                log.error("the audit webhook cannot keep up: events are dropped")
            self._dropped += 1
            return
        self._events.append(encoded)
        self._bytes += len(encoded)
        if len(self._events) == 1 or len(self._events) >= self._settings.max_size:
            self._wake.set()
        if self._runner is None:
            self._loop = asyncio.get_running_loop()
            self._refilled = self._loop.time()
            self._runner = self._loop.create_task(self._run())

    def close(self) -> None:
        """Sends the waiting events. It is called from a thread other than the event loop's."""
        if self._loop is not None:
            asyncio.run_coroutine_threadsafe(self._finish(), self._loop).result()
        if self._dropped:
            log.error("%d audit events were dropped", self._dropped)

    async def _finish(self) -> None:
        self._closing = True
        self._wake.set()
        assert self._runner is not None
        tasks = {self._runner}
        _, late = await asyncio.wait(tasks, timeout=CLOSING_SECONDS)
        if self._sending:
            _, unsent = await asyncio.wait(self._sending, timeout=CLOSING_SECONDS)
            late |= unsent
        for task in late:
            task.cancel()
        if late or self._events:
            log.error("the audit webhook did not accept all events before the shutdown")
        await self._sender.close()

    async def _run(self) -> None:
        while await self._filled():
            await self._throttle()
            if len(self._sending) >= IN_FLIGHT:
                await asyncio.wait(self._sending, return_when=asyncio.FIRST_COMPLETED)
            count = min(len(self._events), self._settings.max_size)
            batch = [self._events.popleft() for _ in range(count)]
            task = asyncio.get_running_loop().create_task(self._deliver(batch))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _filled(self) -> bool:
        """Waits until a batch is full or its time is up. False at shutdown, when no events are left."""
        while not self._events:
            if self._closing:
                return False
            self._wake.clear()
            await self._wake.wait()
        clock = asyncio.get_running_loop().time
        deadline = clock() + self._settings.max_wait
        while len(self._events) < self._settings.max_size and not self._closing:
            self._wake.clear()
            try:
                async with eager_task.timeout(max(deadline - clock(), 0)):
                    await self._wake.wait()
            except TimeoutError:
                break
        return True

    async def _throttle(self) -> None:
        """Token bucket of batches. Shutdown does not wait for it."""
        rate = self._settings.throttle_qps
        if not rate or self._closing:
            return
        clock = asyncio.get_running_loop().time
        self._tokens = min(self._settings.throttle_burst, self._tokens + (clock() - self._refilled) * rate)
        self._refilled = clock()
        self._tokens -= 1
        if self._tokens < 0:
            await asyncio.sleep(-self._tokens / rate)

    async def _deliver(self, batch: list[bytes]) -> None:
        try:
            for items in self._split(batch):
                await self._send(_HEAD + b",".join(items) + _TAIL, len(items))
        finally:
            self._bytes -= sum(map(len, batch))

    async def _send(self, body: bytes, count: int) -> None:
        """Sends a body. It retries after every error, like kube-apiserver."""
        wait = self._settings.initial_backoff
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await self._sender.send(body)
            except CallFailed as error:
                if attempt == ATTEMPTS or self._closing:
                    log.error("the audit webhook failed, %d audit events are lost: %s", count, error)
                    return
            else:
                return
            await asyncio.sleep(wait * (1 + random.random() * JITTER))
            wait *= FACTOR

    def _split(self, batch: list[bytes]) -> Iterator[list[bytes]]:
        """Events of each EventList. A batch above the limit is split."""
        limit = self._settings.truncate_batch
        items: list[bytes] = []
        size = 0
        for event in batch:
            if items and limit and size + len(event) > limit:
                yield items
                items, size = [], 0
            items.append(event)
            size += len(event)
        yield items

    def _encoded(self, event: Object) -> bytes:
        """Event as JSON. An event above the limit loses its objects. Empty if it is still too long."""
        limit = self._settings.truncate_event
        encoded = orjson.dumps(event)
        if not limit or len(encoded) <= limit:
            return encoded
        short = {
            name: value for name, value in event.items() if name not in ("requestObject", "responseObject")
        }
        short["annotations"] = {**(event.get("annotations") or {}), TRUNCATED: "true"}
        encoded = orjson.dumps(short)
        if len(encoded) <= limit:
            return encoded
        log.error("an audit event of %d bytes is too long for the audit webhook and is lost", len(encoded))
        return b""


class Sinks:
    """Several destinations of audit events."""

    def __init__(self, sinks: list[Sink]) -> None:
        self._sinks = sinks

    def put(self, event: Object) -> None:
        for sink in self._sinks:
            sink.put(event)

    def close(self) -> None:
        for sink in self._sinks:
            sink.close()
