"""Clock of a server: the time that objects show and that expiry, schedules and back-offs follow.

Code whose behaviour depends on the time calls the functions of this module. They use the clock of the server whose
request or task runs, which a test can move. Metrics, logs and network timeouts use the system's clocks.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Protocol, TypeVarTuple

Arguments = TypeVarTuple("Arguments")


class Timer(Protocol):
    """Scheduled call."""

    def cancel(self) -> None: ...


class Clock:
    """The system clock."""

    def now(self) -> float:
        """Seconds since 1970."""
        return time.time()

    def monotonic(self) -> float:
        """Monotonic seconds since an arbitrary moment."""
        return time.monotonic()

    def call_after(
        self, seconds: float, callback: Callable[[*Arguments], object], *args: *Arguments
    ) -> Timer:
        """Calls back in the running event loop after a time on this clock."""
        return asyncio.get_running_loop().call_later(seconds, callback, *args)

    async def sleep(self, seconds: float) -> None:
        """Waits for a time on this clock."""
        waiter = asyncio.get_running_loop().create_future()
        timer = self.call_after(seconds, _wake, waiter)
        try:
            await waiter
        finally:
            timer.cancel()


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


SYSTEM = Clock()
CURRENT: ContextVar[Clock] = ContextVar("kubist.base.clock", default=SYSTEM)
"""Clock of the server whose request or task runs."""

_moved = 0
"""Number of clocks in this process that do not show the system's time. While it is 0, `now` reads the system's
clock."""


def count_moved(change: int) -> None:
    """Counts one more (1) or one fewer (-1) clock that differs from the system's."""
    global _moved
    _moved += change


def now() -> float:
    """Seconds since 1970 on the clock of the current server."""
    return CURRENT.get().now() if _moved else time.time()


def monotonic() -> float:
    """Monotonic seconds on the clock of the current server."""
    return CURRENT.get().monotonic() if _moved else time.monotonic()


def call_after(seconds: float, callback: Callable[[*Arguments], object], *args: *Arguments) -> Timer:
    """Calls back after a time on the clock of the current server."""
    return CURRENT.get().call_after(seconds, callback, *args)


async def sleep(seconds: float) -> None:
    """Waits for a time on the clock of the current server."""
    await CURRENT.get().sleep(seconds)
