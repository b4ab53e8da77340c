"""API Priority and Fairness: seats per priority level, queues by shuffle sharding, and turns on the event
loop.

The seats of a level limit its concurrent requests, as in kube-apiserver. Because one thread does all the work, turns
also keep a client with many connections from starting more than a few requests before other users.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from kubist.api.filters.authorization.query import AuthorizationQuery
from kubist.api.filters.flowcontrol.flowschemas import FlowSchema, FlowSchemas
from kubist.api.filters.flowcontrol.priority_level import Level, Queue
from kubist.api.filters.flowcontrol.seats import (
    QUEUE_LENGTHS,
    SEATS,
    SECONDS,
    WATCHES,
    ExemptSeat,
    Seat,
    TooManyRequests,
    Traffic,
    WatchSeat,
    long_running,
    observe,
)
from kubist.api.filters.flowcontrol.work_estimate import ListEstimator, WatchTracker, final_seats
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.object_store.registry import Registry

TURNS = 4
"""Requests of one user that may start before the event loop returns to other connections."""
ALL_TURNS = 8
"""Requests of all users that may start in one turn. It limits the delay of a health check."""
_MUTATING = frozenset(("create", "update", "patch", "delete"))
_LISTING = frozenset(("list", "watch"))
_NO_QUERY: Mapping[str, str] = MappingProxyType({})


class FlowControl:
    """All priority levels of a server."""

    def __init__(self, registry: Registry, seats: int, patience: float) -> None:
        self._seats = seats
        self.patience = patience
        """Maximum seconds that a request waits in a queue."""
        self._schemas = FlowSchemas(registry, self._configure)
        self._levels: dict[str, Level] = {}
        self._traffic: dict[tuple[str, str], Traffic] = {}
        """Counters by the UIDs of FlowSchema and priority level."""
        self._lists = ListEstimator(registry)
        self._watches = WatchTracker()
        self._begun: dict[str, int] = {}
        self._turns = 0
        """Requests started in this turn of the event loop: `_begun` by user, `_turns` in total."""
        self._later: dict[str, deque[asyncio.Future[None]]] = {}

    def seat(self, request: AuthorizationQuery, query: Mapping[str, str] = _NO_QUERY) -> Seat | None:
        """Seats for a request, which may have to wait; None if the request is not limited. Raises
        TooManyRequests."""
        schema = self._schemas.classify(request)
        if schema is None:
            return None
        traffic, verb = schema.traffic or self._count(schema), request.verb
        exempt_seat = traffic.exempt_seat
        if verb == "get" and exempt_seat is not None and not request.subresource:
            traffic.executing += 1
            return exempt_seat
        if verb != "watch" and long_running(request):
            return None
        seat: Seat
        if verb in _MUTATING:
            seat = self._write_seat(request, traffic)
        elif verb in _LISTING and request.is_resource:
            seat = self._list_seat(request, query, traffic)
        else:
            seat = exempt_seat or Seat(self, traffic)
        if seat is exempt_seat:
            traffic.executing += 1
            return seat
        level = traffic.level
        if level.exempt:
            self._occupy(seat)
            return seat
        if level.queued == 0 and self._has_free_seat(level, seat.width):
            self._occupy(seat)
        elif level.queue_count:
            self._enqueue(seat, schema, request)
        else:
            traffic.reject("concurrency-limit")
            seat.leave(0)
            raise TooManyRequests(traffic.headers)
        seat.turn = self._turn(request.user.name)
        return seat

    def _list_seat(self, request: AuthorizationQuery, query: Mapping[str, str], traffic: Traffic) -> Seat:
        width = self._lists.seats(request, query, traffic.level.most_seats)
        if width > 1:
            observe(traffic.seats, SEATS, width)
        if request.verb == "watch":
            return WatchSeat(self, traffic, width, self._watches, request)
        return Seat(self, traffic, width) if width > 1 else traffic.exempt_seat or Seat(self, traffic)

    def _write_seat(self, request: AuthorizationQuery, traffic: Traffic) -> Seat:
        """Seats of a write. A ServiceAccount's `/token` causes no watch event."""
        final, latency = 0, 0.0
        if request.subresource != "token" or request.resource != "serviceaccounts":
            watches = self._watches.interested(request)
            observe(traffic.watch_counts, WATCHES, watches)
            if watches:
                final, latency = final_seats(watches, traffic.level.most_seats)
        if final > 1:
            observe(traffic.seats, SEATS, final)
        return Seat(self, traffic, 1, final, latency) if final else traffic.exempt_seat or Seat(self, traffic)

    def _count(self, schema: FlowSchema) -> Traffic:
        """Counters of a FlowSchema at its level."""
        level = self._levels[schema.level]
        key = (schema.uid, level.uid)
        traffic = self._traffic.get(key)
        if traffic is None:
            traffic = self._traffic[key] = Traffic(schema.name, schema.uid, level)
        traffic.exempt_seat = ExemptSeat(self, traffic) if level.exempt else None
        schema.traffic = traffic
        return traffic

    def _occupy(self, seat: Seat) -> None:
        traffic, width = seat.traffic, seat.width
        seat.taken = True
        traffic.executing += 1
        if width > 1 or seat.latency:
            traffic.wide_seats += width - 1
        traffic.level.executing += width

    def _enqueue(self, seat: Seat, schema: FlowSchema, request: AuthorizationQuery) -> None:
        traffic = seat.traffic
        level = traffic.level
        queue = level.deal(f"{schema.name}\0{schema.flow(request)}")
        if len(queue.waiting) >= level.queue_length and level.executing >= level.nominal:
            traffic.reject("queue-full")
            seat.leave(0)
            raise TooManyRequests(traffic.headers)
        if not queue.waiting:
            queue.served = max(queue.served, level.now)
        seat.waiting = asyncio.get_running_loop().create_future()
        seat.waited = time.perf_counter()
        queue.waiting.append(seat)
        queue.work += seat.work
        level.queued += 1
        traffic.queued += 1
        traffic.queued_seats += seat.width
        observe(traffic.queue_lengths, QUEUE_LENGTHS, len(queue.waiting))

    def _has_free_seat(self, level: Level, width: int = 1) -> bool:
        """Whether a level has free seats, or may borrow unused seats that other levels lend."""
        total = level.executing + width
        if total <= level.nominal or (level.executing == 0 and width > 1):
            return True
        if total > level.max_seats:
            return False
        return total - max(level.executing, level.nominal) <= self._lendable()

    def _lendable(self) -> int:
        """Seats that levels lend and that no level has borrowed."""
        seats = 0
        for level in self._levels.values():
            if not level.exempt:
                seats -= max(0, level.executing - level.nominal)
                seats += max(0, min(level.lendable, level.nominal - level.executing))
        return seats

    def release(self, seat: Seat) -> None:
        """Frees the seats of an executed request, and starts waiting requests."""
        traffic, width = seat.traffic, seat.width
        level = traffic.level
        if width > 1 or seat.latency:
            traffic.wide_seats -= width - 1
        level.executing -= width
        self._dispatch(level)
        for other in self._levels.values():
            if other.queued and other is not level:
                self._dispatch(other)

    def _dispatch(self, level: Level) -> None:
        while level.queued:
            queue = level.next_queue()
            assert queue is not None
            seat = queue.waiting[0]
            assert seat.waiting is not None
            if seat.waiting.done():
                self._dequeue(queue, seat)
                continue
            if not self._has_free_seat(level, seat.width):
                seat.traffic.no_accommodation += 1
                return
            level.now = queue.served
            queue.served += seat.work
            self._dequeue(queue, seat)
            self._occupy(seat)
            seat.taken = False
            seat.waiting.set_result(None)

    def _dequeue(self, queue: Queue, seat: Seat) -> None:
        queue.waiting.remove(seat)
        queue.work = queue.work - seat.work if queue.waiting else 0.0
        traffic = seat.traffic
        traffic.level.queued -= 1
        traffic.queued -= 1
        traffic.queued_seats -= seat.width

    def withdraw(self, seat: Seat) -> None:
        """Removes a waiting request after a timeout or a disconnect. Frees its seats if it got them in the meantime."""
        waiting, traffic = seat.waiting, seat.traffic
        if waiting is None:
            return
        seat.waiting = None
        for queue in traffic.level.queues:
            if seat in queue.waiting:
                self._dequeue(queue, seat)
                traffic.reject("time-out")
                observe(traffic.waits[False], SECONDS, time.perf_counter() - seat.waited)
                return
        if waiting.done() and not waiting.cancelled():
            traffic.finish(0)
            self.release(seat)

    def limits(self) -> dict[str, tuple[int, ...]]:
        """Seats of each level: nominal, lower and upper limit, and the seats that it may occupy now."""
        free = self._lendable()
        limits: dict[str, tuple[int, ...]] = {}
        for level in self._levels.values():
            upper = min(level.max_seats, level.nominal + self._seats)
            now = min(upper, max(level.nominal, level.executing) + free)
            limits[level.name] = (level.nominal, level.nominal - level.lendable, int(upper), int(now))
        return limits

    def totals(self) -> dict[tuple[str, str], dict[str, list[float]]]:
        """Counters of the requests, by FlowSchema and priority level."""
        return {(each.schema, each.level.name): each.totals() for each in self._traffic.values()}

    def _configure(self, levels: list[Object]) -> None:
        index: dict[str, Level] = {}
        for obj in levels:
            level = self._levels.get(obj["metadata"]["name"])
            if level is None:
                level = Level(obj)
            else:
                level.configure(obj)
            index[level.name] = level
        total = sum(level.shares for level in index.values())
        for level in index.values():
            level.set_nominal(math.ceil(self._seats * level.shares / total) if total else 0)
        self._levels = index
        served = {
            (schema.uid, index[schema.level].uid) for schema in self._schemas.all() if schema.level in index
        }
        self._traffic = {key: traffic for key, traffic in self._traffic.items() if key in served}

    def _turn(self, user: str) -> asyncio.Future[None] | None:
        """None if a request of the user may start at once; else a future to wait for."""
        begun = self._begun
        if not begun:
            asyncio.get_running_loop().call_soon(self._next_turn)
        count = begun.get(user, 0)
        if count < TURNS and self._turns < ALL_TURNS and user not in self._later:
            begun[user] = count + 1
            self._turns += 1
            return None
        future = asyncio.get_running_loop().create_future()
        self._later.setdefault(user, deque()).append(future)
        return future

    def _next_turn(self) -> None:
        """Starts waiting requests, one user after the other, continuing where the last turn ended."""
        self._begun, self._turns = {}, 0
        begun, later = self._begun, self._later
        if not later:
            return
        while later and self._turns < ALL_TURNS:
            user = next(iter(later))
            if begun.get(user) == TURNS:
                break
            waiting = later.pop(user)
            future = waiting.popleft()
            if waiting:
                later[user] = waiting
            if not future.done():
                future.set_result(None)
                self._turns += 1
            begun[user] = begun.get(user, 0) + 1
        asyncio.get_running_loop().call_soon(self._next_turn)
