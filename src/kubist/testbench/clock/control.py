"""Operations on the clock of a server: read and move it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated

from kubist.model.meta import times
from kubist.model.meta.object import Object
from kubist.storage.store import Store
from kubist.testbench.clock.movable import MovableClock, advanced, checked_speed, checked_time
from kubist.testbench.control_api.body import Body, read
from kubist.testbench.control_api.control_api import Call, ControlAPI, Operation, conflict
from kubist.testbench.control_api.field_types import Duration, Time

SHARED = "the clock cannot be moved: the store is shared with other servers"


class ClockState(Body):
    now: Time
    frozen: bool
    speed: float
    offset: Annotated[float, "Seconds ahead of real time."]


class ClockMove(Body):
    """At most one of now, offset and advance, and one of frozen and speed."""

    now: Time | None = None
    offset: Duration | None = None
    advance: Duration | None = None
    speed: float | None = None
    frozen: bool | None = None


class ClockControl:
    """`/kubist/v1/clock`."""

    def __init__(self, clock: MovableClock, store: Store, changed: Callable[[], None]) -> None:
        self._clock = clock
        self._store = store
        self._changed = changed
        """Called after the clock was moved or reset."""

    def register(self, api: ControlAPI) -> None:
        api.add(
            Operation("GET", "clock", self._get, result="Clock"),
            Operation("PUT", "clock", self._put, body="ClockMove", result="Clock"),
            Operation("DELETE", "clock", self._delete, result="Clock"),
        )

    async def _get(self, _: Call) -> Object:
        """Time of day on the server, and whether the clock is frozen, moved or fast."""
        return self.state()

    async def _put(self, call: Call) -> Object:
        """Moves the clock: `now`, `offset` or `advance`; `frozen` or `speed`."""
        fields = call.fields("Clock")
        steps = [name for name in ("now", "offset", "advance") if name in fields]
        is_move = bool(steps) or "speed" in fields or "frozen" in fields
        for name in steps[1:]:
            fields.reject(name, "", f"must not be set together with {steps[0]}")
        if "speed" in fields and "frozen" in fields:
            fields.reject("speed", "", "must not be set together with frozen")
        clock = self._clock
        move = read(
            fields,
            ClockMove,
            now=checked_time,
            offset=lambda seconds: checked_time(time.time() + seconds),
            advance=lambda seconds: advanced(clock.now(), seconds),
            speed=checked_speed,
        )
        fields.done()
        self.check_local()
        if not is_move:
            return self.state()
        now = next((step for step in (move.now, move.offset, move.advance) if step is not None), clock.now())
        speed = clock.speed if move.speed is None else move.speed
        if move.frozen is not None:
            speed = 0.0 if move.frozen else speed or 1.0
        clock.move(now, speed)
        self._changed()
        return self.state()

    async def _delete(self, _: Call) -> Object:
        """Shows real time again."""
        self._clock.reset()
        self._changed()
        return self.state()

    def check_local(self) -> None:
        """Raises 409 if other servers use the same store, because they have clocks of their own."""
        if not self._store.local:
            conflict(SHARED)

    def state(self) -> Object:
        clock = self._clock
        now = clock.now()
        return {
            "now": times.format_micro_time(*divmod(int(now * 1e6), 10**6)),
            "frozen": clock.speed == 0,
            "speed": clock.speed,
            "offset": round(clock.offset, 6),
        }
