"""Event recorder of controllers: writes Events about objects, and counts repetitions instead of writing them again.

The rules are those of client-go. An Event that repeats an earlier one raises its count. After ten different messages of
one reason about one object within ten minutes, the next ones share one Event. One object gets at most 25 Events in a
row, then one every five minutes. Events are lost if they arrive faster than they can be written.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import deque
from dataclasses import dataclass, field

from kubist.api.object_client import ObjectClient
from kubist.base.caching import BoundedCache
from kubist.base.clock import Clock
from kubist.model.meta import times
from kubist.model.meta.object import Object
from kubist.model.meta.status import APIError
from kubist.storage.store import StoreError

log = logging.getLogger("kubist.control")

PENDING = 20_000
"""Maximum number of Events that wait to be written."""
KNOWN = 4096
"""Maximum number of objects and of Events that a recorder remembers."""
KEY_LENGTH = 4096
MESSAGE_LENGTH = 1024
SIMILAR = 10
SIMILAR_SECONDS = 600.0
BURST = 25
REFILL_SECONDS = 300.0
PAUSE = 0.001
"""Seconds between two writes, so that the controllers' own writes go first under load."""
NAME_LENGTH = 236
"""Maximum length of the object's name in the name of an Event, which has 17 more characters."""
REPEATED = ("message", "count", "lastTimestamp", "series")
COMBINED = "(combined from similar events): "

_numbers = itertools.count()


@dataclass(slots=True)
class _Budget:
    """Number of Events that may still be written about one object."""

    tokens: float
    since: float

    def take(self, now: float) -> bool:
        self.tokens = min(BURST, self.tokens + (now - self.since) / REFILL_SECONDS)
        self.since = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


@dataclass(slots=True)
class _Similar:
    """Messages of one reason about one object."""

    since: float
    messages: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Known:
    """Event that was written, and its repetitions that were not written yet."""

    event: Object
    is_written: bool = False
    is_pending: bool = False


class EventRecorder:
    """Records Events of one component."""

    def __init__(self, client: ObjectClient, clock: Clock, component: str, host: str = "") -> None:
        self._client = client
        self._clock = clock
        self._component = component
        self._host = host
        self._budgets: BoundedCache[tuple[str, str], _Budget] = _cache()
        self._similar: BoundedCache[tuple[str, ...], _Similar] = _cache()
        self._known: BoundedCache[tuple[str, ...], _Known] = _cache()
        self._pending: deque[_Known] = deque()
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def emit(
        self,
        about: Object,
        type_: str,
        reason: str,
        message: str,
        *,
        host: str = "",
        field_path: str = "",
        action: str = "",
    ) -> None:
        """Records an Event about an object.

        `type_` is Normal or Warning. `host` is the node of a kubelet, `field_path` the container of a pod. With an
        `action` the Event has the shape of events.k8s.io: a time, and a series instead of a count.
        """
        if self._closed:
            return
        now = self._clock.now()
        host = host or self._host
        reference = reference_to(about, field_path)
        uid = reference.get("uid") or "/".join((reference["kind"], reference["name"]))
        message = message[:MESSAGE_LENGTH]
        key: tuple[str, ...] = (host, uid, field_path, type_, reason)
        if self._is_crowded(key, message, now):
            message = COMBINED + message
        else:
            key = (*key, message)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = _Known(self._event(reference, type_, reason, message, host, action))
        else:
            _repeat(known.event, message, now)
        budget = self._budgets.get((host, uid))
        if budget is None:
            budget = self._budgets[host, uid] = _Budget(BURST, now)
        if budget.take(now):
            self._write_soon(known)

    def _is_crowded(self, key: tuple[str, ...], message: str, now: float) -> bool:
        """Whether many recent messages about this object have this reason."""
        similar = self._similar.get(key)
        if similar is None or now - similar.since > SIMILAR_SECONDS:
            similar = self._similar[key] = _Similar(now)
        similar.since = now
        if len(similar.messages) < SIMILAR:
            similar.messages.add(message)
            return False
        return message not in similar.messages

    def _event(
        self, reference: Object, type_: str, reason: str, message: str, host: str, action: str
    ) -> Object:
        now = self._clock.now()
        event: Object = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": f"{reference['name'][:NAME_LENGTH]}.{int(now * 1e9) + next(_numbers) % 1000:x}",
                "namespace": reference.get("namespace") or "default",
            },
            "involvedObject": reference,
            "type": type_,
            "reason": reason,
            "message": message,
            "reportingComponent": self._component,
            "reportingInstance": host,
        }
        if action:
            instance = f"{self._component}-{host}" if host else self._component
            return event | {"action": action, "eventTime": _micro_time(now), "reportingInstance": instance}
        stamp = times.format_time(int(now))
        source = {"component": self._component, "host": host} if host else {"component": self._component}
        return event | {"source": source, "firstTimestamp": stamp, "lastTimestamp": stamp, "count": 1}

    def _write_soon(self, known: _Known) -> None:
        if known.is_pending or len(self._pending) >= PENDING:
            return
        known.is_pending = True
        self._pending.append(known)
        if self._task is None:
            self._task = asyncio.ensure_future(self._write())

    async def _write(self) -> None:
        try:
            while self._pending:
                known = self._pending.popleft()
                known.is_pending = False
                try:
                    await self._write_one(known)
                except (APIError, StoreError) as error:
                    # Usual while a namespace is deleted.
                    log.debug("an Event cannot be written: %s", error)
                await asyncio.sleep(PAUSE)
        finally:
            self._task = None

    async def _write_one(self, known: _Known) -> None:
        event = known.event
        metadata = event["metadata"]
        if known.is_written and await self._client.update(
            "events", metadata["name"], metadata["namespace"], lambda current: _repeated(current, event)
        ):
            return
        await self._client.create("events", {**event, "metadata": dict(metadata)}, metadata["namespace"])
        known.is_written = True

    async def close(self) -> None:
        """Stops. Events that were not written yet are lost."""
        self._closed = True
        self._pending.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


def _repeat(event: Object, message: str, now: float) -> None:
    event["message"] = message
    if "action" in event:
        count = (event.get("series") or {}).get("count", 1) + 1
        event["series"] = {"count": count, "lastObservedTime": _micro_time(now)}
    else:
        event |= {"count": event["count"] + 1, "lastTimestamp": times.format_time(int(now))}


def _repeated(current: Object, event: Object) -> Object:
    """The stored Event with the repetitions that were counted since."""
    return current | {part: event[part] for part in REPEATED if part in event}


def _micro_time(now: float) -> str:
    seconds = int(now)
    return times.format_micro_time(seconds, int((now - seconds) * 1e6))


def _cache() -> BoundedCache:  # type: ignore[type-arg]
    return BoundedCache(entries=KNOWN, key_length=KEY_LENGTH)


def reference_to(obj: Object, field_path: str = "") -> Object:
    """ObjectReference to an object or to a part of it."""
    metadata = obj["metadata"]
    reference = {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "namespace": metadata.get("namespace"),
        "name": metadata["name"],
        "uid": metadata.get("uid"),
        "resourceVersion": metadata.get("resourceVersion"),
        "fieldPath": field_path,
    }
    return {part: value for part, value in reference.items() if value}
