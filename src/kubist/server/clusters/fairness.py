"""Fairness between clusters: limits the requests that a cluster begins in one turn of the event loop.

A cluster begins at most `REQUESTS` requests in one turn. Further ones wait for the next turns, in order. A cluster
with thousands of requests thus delays the request of another cluster by a few milliseconds only.
"""

from __future__ import annotations

import asyncio
from collections import deque

REQUESTS = 16


class RequestTurns:
    """Requests of one cluster that begin in this turn of the event loop, and those that wait."""

    __slots__ = ("_begun", "_waiting")

    def __init__(self) -> None:
        self._begun = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    def take(self) -> asyncio.Future[None] | None:
        """Takes a place in this turn. If there is none, returns a future that ends the wait."""
        if not self._begun:
            asyncio.get_running_loop().call_soon(self._next)
        if self._begun < REQUESTS and not self._waiting:
            self._begun += 1
            return None
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        return future

    def _next(self) -> None:
        """Begins the next turn."""
        self._begun = 0
        waiting = self._waiting
        while waiting and self._begun < REQUESTS:
            future = waiting.popleft()
            if not future.done():  # its client may have left
                future.set_result(None)
                self._begun += 1
        if self._begun:
            asyncio.get_running_loop().call_soon(self._next)
