"""Long work runs in a worker thread, so that it does not block the event loop.

Work starts on the event loop. If it turns out to be long, it is started again in the worker. It must therefore
have no side effects before it is done.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

SLICE = 20_000
"""Maximum CEL cost of one request's evaluations on the event loop, equivalent to a few milliseconds."""

LONG = 32 << 10
"""Size in bytes from which a body or stored object is too slow to handle on the event loop."""

Result = TypeVar("Result")
on_loop: Callable[[], Any] = asyncio._get_running_loop
"""Event loop that runs in this thread, or None."""


class Lengthy(Exception):
    """Work that takes too long for the event loop."""


_stays: contextvars.ContextVar[bool] = contextvars.ContextVar("stays", default=False)


def leave_loop() -> None:
    """Makes the caller start again in the worker, if this is the event loop."""
    if on_loop() is not None and not _stays.get():
        raise Lengthy


def stay(function: Callable[..., Result], *args: Any) -> Result:
    """Result of `function(*args)` in this thread, even if it calls `leave_loop`. For callers that cannot wait for the
    worker."""
    token = _stays.set(True)
    try:
        return function(*args)
    finally:
        _stays.reset(token)


async def elsewhere(function: Callable[..., Result], *args: Any) -> Result:
    """Result of `function(*args)` in the worker thread. There is one worker, so long work waits only for other
    long work."""
    run = contextvars.copy_context().run  # carries the server's clock over
    return await asyncio.get_running_loop().run_in_executor(
        _worker(), functools.partial(run, function, *args)
    )


async def away(long: bool, function: Callable[..., Result], *args: Any) -> Result:
    """Result of `function(*args)`: in the worker if `long`, otherwise on the event loop."""
    return await elsewhere(function, *args) if long else function(*args)


@functools.cache
def _worker() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="lengthy")
