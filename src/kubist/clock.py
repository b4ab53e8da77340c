"""Clock of a server: the time of day that objects show, and the timers that wait for it.

Code whose behaviour depends on the time asks the clock of its server. Metrics, logs and network timeouts use the
system's clocks.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVarTuple

Arguments = TypeVarTuple("Arguments")


class Clock:
    """The system clock."""

    def now(self) -> float:
        """Seconds since 1970."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds since any moment. They never go back."""
        return time.monotonic()

    def call_after(
        self, seconds: float, callback: Callable[[*Arguments], object], *args: *Arguments
    ) -> asyncio.TimerHandle:
        """Calls back in the running event loop after a time on this clock."""
        return asyncio.get_running_loop().call_later(seconds, callback, *args)
