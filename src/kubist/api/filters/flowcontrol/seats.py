"""Seats of a request in flow control, and the error if no seat is free."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from kubist.api.filters.authorization.query import AuthorizationQuery
from kubist.api.filters.flowcontrol.traffic import SECONDS, Traffic, observe
from kubist.api.filters.flowcontrol.work_estimate import WatchTracker
from kubist.base.http.messages import Headers, Response

if TYPE_CHECKING:
    from kubist.api.filters.flowcontrol.flowcontrol import FlowControl

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
