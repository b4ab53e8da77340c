"""Turns of long work on the event loop: other tasks run after every few milliseconds of it."""

from __future__ import annotations

import asyncio
from time import perf_counter

TURN = 0.005
"""Seconds of work after which other tasks get a turn."""


class Turns:
    """Divides one piece of work into turns. The work calls `pause` after each small step."""

    __slots__ = ("_begun",)

    def __init__(self) -> None:
        self._begun = perf_counter()

    async def pause(self) -> None:
        """Lets other tasks run if this turn has taken long enough."""
        if perf_counter() - self._begun > TURN:
            await asyncio.sleep(0)
            self._begun = perf_counter()
