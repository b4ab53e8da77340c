"""Long work leaves the event loop, so that others get their turns: what is found to be long is begun anew in a
worker thread. Only what has no effect before it is done may be."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

SLICE = 20_000
"""What evaluations for one request may cost on the event loop: some milliseconds."""

LONG = 32 << 10
"""Bytes of a body or of a stored object from which on handling it takes too long for the event loop."""

Result = TypeVar("Result")
on_loop: Callable[[], Any] = asyncio._get_running_loop
"""The event loop that this thread runs, if it runs one."""


class Lengthy(Exception):
    """This takes too long for the event loop."""


def leave_loop() -> None:
    """Have the caller begin anew where there is time."""
    if on_loop() is not None:
        raise Lengthy


async def elsewhere(function: Callable[..., Result], *args: Any) -> Result:
    """`function(*args)` in the worker. There is one: long work waits for long work, not for nothing else."""
    return await asyncio.get_running_loop().run_in_executor(_worker(), functools.partial(function, *args))


async def away(long: bool, function: Callable[..., Result], *args: Any) -> Result:
    """`function(*args)`: in the worker if it is `long`, else here and now."""
    return await elsewhere(function, *args) if long else function(*args)


@functools.cache
def _worker() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="lengthy")
