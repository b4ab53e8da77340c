"""Eager coroutines: run in the caller's turn of the event loop, and become a task only if they wait.

Most requests are answered without waiting. A task with its own turn of asyncio's loop takes 72,000 instructions
instead of 4,000; a get takes about 105,000 (`benchmarks/optimisations.py`). Python 3.12 has eager tasks of its own.
`tests/test_eager_task.py` compares both.
"""

from __future__ import annotations

import asyncio
import sys
import types
from collections.abc import Coroutine, Generator
from typing import Any

Work = Coroutine[Any, Any, None]


def begin(work: Work, loop: asyncio.AbstractEventLoop) -> asyncio.Task[None] | None:
    """Runs a coroutine until its first wait. Returns the task for the rest, or None if it is finished. Raises its
    exception if it fails before it waits."""
    if sys.version_info >= (3, 12):
        task: asyncio.Task[None] = asyncio.Task(work, loop=loop, eager_start=True)
        if not task.done():
            return task
        task.result()
        return None
    caller = asyncio.current_task(loop)
    if caller is not None:
        # Otherwise a timeout of this coroutine would cancel the caller.
        asyncio.tasks._leave_task(loop, caller)
    try:
        awaited = work.send(None)
    except StopIteration:
        return None
    finally:
        if caller is not None:
            asyncio.tasks._enter_task(loop, caller)
    return loop.create_task(_rest(work, awaited))


class timeout:
    """`asyncio.timeout` that also works before the first wait, when there is no current task yet.

    async with eager_task.timeout(5):
        await event.wait()
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds

    async def __aenter__(self) -> None:
        if asyncio.current_task() is None:
            await asyncio.sleep(0)
        self._timeout = asyncio.timeout(self._seconds)
        await self._timeout.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: types.TracebackType | None
    ) -> None:
        await self._timeout.__aexit__(kind, error, trace)


async def _rest(work: Work, awaited: Any) -> None:
    await _resumed(work, awaited)


@types.coroutine
def _resumed(work: Work, awaited: Any) -> Generator[Any, Any, None]:
    """Continues a coroutine that waits for `awaited`."""
    while True:
        try:
            yield awaited
        except BaseException as error:
            try:
                awaited = work.throw(error)
            except StopIteration:
                return
        else:
            yield from work
            return
