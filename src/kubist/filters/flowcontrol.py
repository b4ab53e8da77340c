"""API Priority and Fairness: seats per priority level, queues by shuffle sharding, and turns on the event
loop.

The seats of a level limit its concurrent requests, as in the reference. Because one thread does all the work,
turns also keep a client with many connections from starting more than a few requests before other users.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections import deque
from typing import TYPE_CHECKING, ClassVar

from kubist.filters.authorization import MASTERS
from kubist.filters.authorization_query import AuthorizationQuery
from kubist.filters.flowschemas import FlowSchema, FlowSchemas
from kubist.http.messages import Headers, Response
from kubist.meta.object import Object

if TYPE_CHECKING:
    from kubist.objectstore.registry import Registry

TURNS = 4
"""Requests of one user that may start before the event loop looks at other connections again."""
ALL_TURNS = 8
"""Requests of all users that may start in one turn. It limits the delay of a health check."""
LONG_RUNNING = frozenset(("attach", "exec", "log", "portforward", "proxy"))
TOO_MANY = Response(
    429,
    [
        (b"Content-Type", b"text/plain; charset=utf-8"),
        (b"X-Content-Type-Options", b"nosniff"),
        (b"Retry-After", b"1"),
    ],
    b"Too many requests, please try again later.\n",
)


class TooManyRequests(Exception):
    """All seats are taken and the queue is full, or the wait in the queue timed out."""


def long_running(asked: AuthorizationQuery) -> bool:
    return asked.is_resource and (asked.verb in ("watch", "proxy") or asked.subresource in LONG_RUNNING)


class Queue:
    """Queue of a few flows. `served` is its virtual time: the number of requests it dispatched, relative to
    other queues."""

    __slots__ = ("served", "waiting")

    def __init__(self) -> None:
        self.served = 0
        self.waiting: deque[asyncio.Future[None]] = deque()


class Level:
    """A priority level: its seats and queues."""

    def __init__(self, obj: Object) -> None:
        self.name: str = obj["metadata"]["name"]
        self.nominal = 0
        self.executing = 0
        self.queued = 0
        self.now = 0
        self._queues: list[Queue] = []
        self.configure(obj)

    def configure(self, obj: Object) -> None:
        spec = obj["spec"]
        self.uid: str = obj["metadata"].get("uid", "")
        self.exempt = spec.get("type") == "Exempt"
        limits = spec.get("exempt" if self.exempt else "limited") or {}
        self.shares: int = limits.get("nominalConcurrencyShares", 0)
        self._lendable: int = limits.get("lendablePercent", 0)
        self._borrowing: int | None = limits.get("borrowingLimitPercent")
        queuing = (limits.get("limitResponse") or {}).get("queuing") or {}
        self.hand_size: int = queuing.get("handSize", 0)
        self.queue_length: int = queuing.get("queueLengthLimit", 0)
        self.queue_count: int = queuing.get("queues", 0)
        del self._queues[max(self.queue_count, self._last_used() + 1) :]

    @property
    def queues(self) -> list[Queue]:
        """The queues. They are made when the first request waits: those of all levels take half a megabyte."""
        self._queues += [Queue() for _ in range(self.queue_count - len(self._queues))]
        return self._queues

    def _last_used(self) -> int:
        return max((index for index, queue in enumerate(self._queues) if queue.waiting), default=-1)

    @property
    def lendable(self) -> int:
        return self.nominal * self._lendable // 100

    @property
    def max_seats(self) -> float:
        """Maximum number of seats including borrowed ones."""
        if self._borrowing is None:
            return math.inf
        return self.nominal + math.ceil(self.nominal * self._borrowing / 100)

    def deal(self, flow: str) -> Queue:
        """The shortest of the queues dealt to a flow (shuffle sharding), so that a busy flow rarely blocks
        all queues of another."""
        value = int.from_bytes(hashlib.sha256(flow.encode()).digest()[:8], "little")
        queues = self.queues
        count = len(queues)
        hand: list[int] = []
        for left in range(count, count - min(self.hand_size, count), -1):
            value, card = divmod(value, left)
            for held in sorted(hand):
                if card >= held:
                    card += 1
            hand.append(card)
        return min((queues[card] for card in hand), key=lambda queue: len(queue.waiting))

    def next(self) -> asyncio.Future[None] | None:
        """The first request of the queue with the least virtual time; None if no request waits."""
        queue = min((queue for queue in self._queues if queue.waiting), key=lambda q: q.served, default=None)
        if queue is None:
            return None
        self.queued -= 1
        self.now = queue.served
        queue.served += 1
        return queue.waiting.popleft()


class Seat:
    """Seat of a request at its priority level. `leave` must be called when the request is answered."""

    __slots__ = ("_control", "headers", "level", "taken", "turn", "waiting")

    def __init__(self, control: FlowControl, level: Level, headers: Headers) -> None:
        self._control = control
        self.level = level
        self.headers = headers
        self.taken = False
        self.waiting: asyncio.Future[None] | None = None
        """Wait for a seat of the level."""
        self.turn: asyncio.Future[None] | None = None
        """Wait for a turn on the event loop."""

    async def ready(self) -> None:
        """Waits for the seat and the turn. Raises TooManyRequests if there is no seat in time."""
        if self.waiting is not None:
            try:
                await asyncio.wait_for(self.waiting, self._control.patience)
            except TimeoutError:
                raise TooManyRequests from None
            self.taken = True
        if self.turn is not None:
            await self.turn

    def leave(self) -> None:
        if self.taken:
            self._control.release(self.level)
        elif self.waiting is not None:
            self._control.withdraw(self)


class FlowControl:
    """All priority levels of a server."""

    def __init__(self, registry: Registry, seats: int, patience: float) -> None:
        self._seats = seats
        self.patience = patience
        """Maximum seconds that a request waits in a queue."""
        self._schemas = FlowSchemas(registry, self._configure)
        self._levels: dict[str, Level] = {}
        self._headers: dict[tuple[str, str], Headers] = {}
        self._exempt_seats: dict[tuple[str, str], Seat] = {}
        self._begun: dict[str, int] = {}
        self._turns = 0
        """Requests started in this turn of the event loop: `_begun` by user, `_turns` in total."""
        self._later: dict[str, deque[asyncio.Future[None]]] = {}

    def seat(self, asked: AuthorizationQuery) -> Seat | None:
        """Seat for a request, which may have to wait; None if the request is not limited. Raises TooManyRequests."""
        schema = self._schemas.classify(asked)
        if schema is None or long_running(asked):
            return None
        level = self._levels[schema.level]
        if level.exempt:
            return self._exempt_seat(schema, level)
        seat = Seat(self, level, self._response_headers(schema, level))
        if level.queued == 0 and self._has_free_seat(level):
            level.executing += 1
            seat.taken = True
        elif level.queue_count:
            self._enqueue(seat, schema, asked)
        else:
            raise TooManyRequests
        seat.turn = self._turn(asked.user.name)
        return seat

    def _exempt_seat(self, schema: FlowSchema, level: Level) -> Seat:
        """Shared seat of all exempt requests of a FlowSchema."""
        key = (schema.uid, level.uid)
        found = self._exempt_seats.get(key)
        if found is None:
            found = self._exempt_seats[key] = Seat(self, level, self._response_headers(schema, level))
        return found

    def _response_headers(self, schema: FlowSchema, level: Level) -> Headers:
        key = (schema.uid, level.uid)
        found = self._headers.get(key)
        if found is None:
            found = self._headers[key] = [
                (b"X-Kubernetes-PF-FlowSchema-UID", schema.uid.encode()),
                (b"X-Kubernetes-PF-PriorityLevel-UID", level.uid.encode()),
            ]
        return found

    def _enqueue(self, seat: Seat, schema: FlowSchema, asked: AuthorizationQuery) -> None:
        level = seat.level
        queue = level.deal(f"{schema.name}\0{schema.flow(asked)}")
        if len(queue.waiting) >= level.queue_length:
            raise TooManyRequests
        if not queue.waiting:
            queue.served = max(queue.served, level.now)
        seat.waiting = asyncio.get_running_loop().create_future()
        queue.waiting.append(seat.waiting)
        level.queued += 1

    def _has_free_seat(self, level: Level) -> bool:
        """Whether a level has a free seat, or may borrow a seat that another level lends and does not use."""
        if level.executing < level.nominal:
            return True
        if level.executing >= level.max_seats:
            return False
        lent = free = 0
        for other in self._levels.values():
            if not other.exempt:
                lent += max(0, other.executing - other.nominal)
                free += max(0, min(other.lendable, other.nominal - other.executing))
        return lent < free

    def release(self, level: Level) -> None:
        level.executing -= 1
        self._dispatch(level)
        for other in self._levels.values():
            if other.queued and other is not level:
                self._dispatch(other)

    def _dispatch(self, level: Level) -> None:
        while level.queued and self._has_free_seat(level):
            waiting = level.next()
            assert waiting is not None
            if not waiting.done():
                level.executing += 1
                waiting.set_result(None)

    def withdraw(self, seat: Seat) -> None:
        """Removes a waiting request after a timeout or a disconnect. Frees its seat if it got one meanwhile."""
        waiting, level = seat.waiting, seat.level
        if waiting is None:
            return
        for queue in level.queues:
            if waiting in queue.waiting:
                queue.waiting.remove(waiting)
                level.queued -= 1
                return
        if waiting.done() and not waiting.cancelled():
            self.release(level)

    def _configure(self, levels: list[Object]) -> None:
        found: dict[str, Level] = {}
        for obj in levels:
            level = self._levels.get(obj["metadata"]["name"])
            if level is None:
                level = Level(obj)
            else:
                level.configure(obj)
            found[level.name] = level
        total = sum(level.shares for level in found.values())
        for level in found.values():
            level.nominal = math.ceil(self._seats * level.shares / total) if total else 0
        self._levels = found
        self._headers.clear()
        self._exempt_seats.clear()

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


class InFlight:
    """Limits without priorities: `--max-requests-inflight` and `--max-mutating-requests-inflight`."""

    def __init__(self, reading: int, writing: int) -> None:
        self._limits = (reading, writing)
        self.count = [0, 0]

    def seat(self, asked: AuthorizationQuery) -> Counted | None:
        if long_running(asked):
            return None
        kind = asked.verb not in ("get", "list", "watch", "head", "options")
        limit = self._limits[kind]
        if not limit:
            return None
        if self.count[kind] >= limit:
            if MASTERS in asked.user.groups:
                return None
            raise TooManyRequests
        self.count[kind] += 1
        return Counted(self, kind)


class Counted:
    """Counts a request in `InFlight`; it never waits."""

    __slots__ = ("_kind", "_of")
    headers: ClassVar[Headers] = []
    waiting = turn = None

    def __init__(self, of: InFlight, kind: int) -> None:
        self._of = of
        self._kind = kind

    async def ready(self) -> None: ...

    def leave(self) -> None:
        self._of.count[self._kind] -= 1
