"""Seats of a request in flow control, the error if there are none, and the traffic of requests for the metrics."""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left
from typing import TYPE_CHECKING

from kubist.api.filters.authorization.query import AuthorizationQuery
from kubist.api.filters.flowcontrol.work_estimate import WatchTracker
from kubist.base.http.messages import Headers, Response

if TYPE_CHECKING:
    from kubist.api.filters.flowcontrol.flowcontrol import FlowControl
    from kubist.api.filters.flowcontrol.priority_level import Level

SERVICE_SECONDS = 0.003
"""Estimated duration of a request in seconds, for fair queuing."""
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

    def __init__(self, headers: Headers | None = None) -> None:
        super().__init__()
        self.headers: Headers = headers or []
        """Headers of the response, which name the FlowSchema and the priority level."""


def long_running(request: AuthorizationQuery) -> bool:
    return request.is_resource and (request.verb in ("watch", "proxy") or request.subresource in LONG_RUNNING)


class Seat:
    """Seats of a request at its priority level. `leave` must be called when the request is answered."""

    __slots__ = (
        "_control",
        "headers",
        "latency",
        "taken",
        "traffic",
        "turn",
        "waited",
        "waiting",
        "width",
        "work",
    )

    def __init__(
        self, control: FlowControl, traffic: Traffic, width: int = 1, final: int = 0, latency: float = 0.0
    ) -> None:
        """`final` seats stay occupied for `latency` seconds after the response."""
        self._control = control
        self.traffic = traffic
        self.headers = traffic.headers
        self.width = width if width > final else final
        """Number of seats."""
        self.latency = latency
        self.work = width * SERVICE_SECONDS + final * latency
        """Estimated work in seat-seconds."""
        self.taken = False
        self.waited = 0.0
        """Start time of the wait in a queue; after the wait, its duration."""
        self.waiting: asyncio.Future[None] | None = None
        """Wait for a seat of the level."""
        self.turn: asyncio.Future[None] | None = None
        """Wait for a turn on the event loop."""

    async def ready(self) -> None:
        """Waits for the seats and the turn. Raises TooManyRequests if the seats are not free in time."""
        if self.waiting is not None:
            try:
                await asyncio.wait_for(self.waiting, self._control.patience)
            except TimeoutError:
                raise TooManyRequests(self.headers) from None
            self.taken = True
            self.waited = time.perf_counter() - self.waited
            observe(self.traffic.waits[True], SECONDS, self.waited)
        if self.turn is not None:
            await self.turn

    def initialized(self) -> None:
        """Only watches have an initial part."""

    def leave(self, seconds: float) -> None:
        """Frees the seats. `seconds` is the time since the arrival of the request."""
        if self.taken:
            self.traffic.finish(seconds - self.waited)
            if self.latency:
                asyncio.get_running_loop().call_later(self.latency, self._control.release, self)
            else:
                self._control.release(self)
        elif self.waiting is not None:
            self._control.withdraw(self)


class ExemptSeat(Seat):
    """Seat that all exempt requests of a FlowSchema share, unless they need more than one."""

    __slots__ = ()

    def leave(self, seconds: float) -> None:
        self.traffic.finish(seconds)


class WatchSeat(Seat):
    """Seats of a watch until its initial events are sent. The watch is counted until `leave`."""

    __slots__ = ("_began", "_key", "_tracker")

    def __init__(
        self,
        control: FlowControl,
        traffic: Traffic,
        width: int,
        tracker: WatchTracker,
        request: AuthorizationQuery,
    ) -> None:
        super().__init__(control, traffic, width)
        self._began = time.perf_counter()
        self._tracker = tracker
        self._key = tracker.register(request)

    def initialized(self) -> None:
        if self.taken:
            self.taken = False
            seconds = time.perf_counter() - self._began - self.waited
            self.traffic.executing -= 1
            observe(self.traffic.watch_executions, SECONDS, seconds)
            self._control.release(self)
        elif self.waiting is not None:
            self._control.withdraw(self)
        self.waiting = None

    def leave(self, seconds: float) -> None:
        self.initialized()
        if self._key is not None:
            self._tracker.forget(self._key)
            self._key = None


# Traffic, for the metrics of flow control

SECONDS: tuple[float, ...] = (0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30)
"""Upper bounds of durations in seconds."""
SEATS = (1, 2, 4, 8, 16, 32, 64, 100)
WATCHES = (0, 1, 10, 100, 1000, 10000)
QUEUE_LENGTHS = (0, 10, 25, 50, 100, 250, 500, 1000)
_SHORT = SECONDS[1]

Samples = list[float]
"""Histogram: the count of each bucket, then the sum."""


def samples(bounds: tuple[float, ...]) -> Samples:
    return [0] * (len(bounds) + 2)


def observe(histogram: Samples, bounds: tuple[float, ...], value: float) -> None:
    histogram[bisect_left(bounds, value)] += 1
    histogram[-1] += value


class Traffic:
    """Counters of the requests of a FlowSchema at a priority level.

    A request of one seat that starts at once and takes less than five milliseconds costs three additions. What follows
    from the counters of other requests is computed when /metrics is requested (`totals`).
    """

    __slots__ = (
        "executing", "executions", "exempt_seat", "headers", "level", "no_accommodation", "queue_lengths", "queued",
        "queued_seats", "rejections", "schema", "seats", "waits", "watch_counts", "watch_executions", "wide_seats",
    )  # fmt: skip

    def __init__(self, schema: str, schema_uid: str, level: Level) -> None:
        self.schema = schema
        self.level = level
        self.headers: Headers = [
            (b"X-Kubernetes-PF-FlowSchema-UID", schema_uid.encode()),
            (b"X-Kubernetes-PF-PriorityLevel-UID", level.uid.encode()),
        ]
        self.exempt_seat: ExemptSeat | None = None
        """Seat that requests share if the level is exempt."""
        self.executing = 0
        """Requests that are executed; of watches, the initial part."""
        self.wide_seats = 0
        """Seats that are occupied, except one for each executing request."""
        self.queued = 0
        self.queued_seats = 0
        self.executions = samples(SECONDS)
        self.watch_executions = samples(SECONDS)
        self.seats = samples(SEATS)
        """Estimated seats of requests that need more than one."""
        self.watch_counts = samples(WATCHES)
        self.waits = {True: samples(SECONDS), False: samples(SECONDS)}
        """Waits in a queue, of requests that were executed and that were not."""
        self.queue_lengths = samples(QUEUE_LENGTHS)
        self.rejections: dict[str, int] = {}
        self.no_accommodation = 0

    def finish(self, seconds: float) -> None:
        """Counts the end of an execution."""
        self.executing -= 1
        executions = self.executions
        executions[1 if seconds <= _SHORT else bisect_left(SECONDS, seconds)] += 1
        executions[-1] += seconds

    def reject(self, reason: str) -> None:
        self.rejections[reason] = self.rejections.get(reason, 0) + 1

    def totals(self) -> dict[str, list[float]]:
        """All counters by metric and label values, in a form that can be added to those of other processes."""
        finished = sum(self.executions[:-1]) + sum(self.watch_executions[:-1])
        dispatched = finished + self.executing
        arrived = dispatched + self.queued + sum(self.rejections.values())
        seats, waits, lengths = self.seats.copy(), self.waits[True].copy(), self.queue_lengths.copy()
        single = arrived - sum(self.seats[:-1])
        seats[0] += single
        seats[-1] += single
        if self.level.queue_count:
            # The reference puts every request of such a level into a queue, if only for a moment.
            at_once = dispatched - sum(waits[:-1])
            waits[1] += at_once
            lengths[1] += at_once
            lengths[-1] += at_once
        totals: dict[str, list[float]] = {
            "dispatched_requests_total": [dispatched],
            "current_executing_requests": [self.executing],
            "current_executing_seats": [self.executing + self.wide_seats],
            "work_estimated_seats": seats,
            "request_execution_seconds regular": self.executions,
            "request_execution_seconds watch": self.watch_executions,
            "watch_count_samples": self.watch_counts,
            "request_wait_duration_seconds true": waits,
            "request_wait_duration_seconds false": self.waits[False],
            "request_queue_length_after_enqueue": lengths,
            "request_dispatch_no_accommodation_total": [self.no_accommodation],
        }
        if self.level.queue_count:
            totals["current_inqueue_requests"] = [self.queued]
            totals["current_inqueue_seats"] = [self.queued_seats]
        for reason, count in self.rejections.items():
            totals[f"rejected_requests_total {reason}"] = [count]
        return {name: values for name, values in totals.items() if len(values) == 1 or any(values)}
