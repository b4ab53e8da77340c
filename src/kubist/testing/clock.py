"""Clock of a cluster, moved by a test."""

from __future__ import annotations

import datetime
from collections.abc import Callable

from kubist.model.meta.object import Object

# pytest omits the frames of this module from its reports.
__tracebackhide__ = True

PATH = "/kubist/v1/clock"
Duration = str | float | datetime.timedelta
"""`"1h30m"`, seconds, or a timedelta."""


class ClusterClock:
    """The time on a cluster. Everything in the server follows it: timestamps, expiry, schedules, back-offs.

    cluster.clock.advance("1h")
    """

    def __init__(self, request: Callable[..., Object]) -> None:
        self._request = request

    def __repr__(self) -> str:
        state = self._request("GET", PATH)
        how = "frozen" if state["frozen"] else f"speed {state['speed']:g}"
        return f"<clock {state['now']}, {how}>"

    @property
    def now(self) -> datetime.datetime:
        """Time of day on the cluster."""
        return datetime.datetime.fromisoformat(self._request("GET", PATH)["now"])

    def advance(self, duration: Duration) -> None:
        """Moves the clock forward. Control loops wake up for everything that became due."""
        if isinstance(duration, datetime.timedelta):
            duration = duration.total_seconds()
        self._request("PUT", PATH, {"advance": duration})

    def set(self, time: str | datetime.datetime) -> None:
        """Sets the time of day: an RFC 3339 text, or a datetime with a time zone."""
        if isinstance(time, datetime.datetime):
            if time.tzinfo is None:
                raise ValueError("the datetime needs a time zone, such as tzinfo=datetime.UTC")
            time = time.isoformat()
        self._request("PUT", PATH, {"now": time})

    def freeze(self) -> None:
        """Stops the clock until `run`. `set` and `advance` still move it."""
        self._request("PUT", PATH, {"frozen": True})

    def run(self, speed: float = 1.0) -> None:
        """Starts the clock, `speed` times as fast as real time."""
        self._request("PUT", PATH, {"speed": speed})

    def reset(self) -> None:
        """Shows real time again."""
        self._request("DELETE", PATH)
