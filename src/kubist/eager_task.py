"""Begin a coroutine at once, in the caller's turn of the event loop; a task is made only of one that has to wait.

Most answers are ready without waiting for anything, and a task with its turn of the loop would double their cost.
"""

from __future__ import annotations

import asyncio
import sys
import types
from collections.abc import Coroutine, Generator
from typing import Any

Work = Coroutine[Any, Any, None]


def begin(work: Work, loop: asyncio.AbstractEventLoop) -> asyncio.Task[None] | None:
    """Run until the first wait; the task that does the rest, or None if there is no rest."""
    if sys.version_info >= (3, 12):
        task: asyncio.Task[None] = asyncio.Task(work, loop=loop, eager_start=True)
        return None if task.done() else task
    try:
        awaited = work.send(None)
    except StopIteration:
        return None
    return loop.create_task(_rest(work, awaited))


async def in_task() -> None:
    """For what needs a current task, as `asyncio.timeout` does: there is none before the first wait."""
    if asyncio.current_task() is None:
        await asyncio.sleep(0)


async def _rest(work: Work, awaited: Any) -> None:
    await _resumed(work, awaited)


@types.coroutine
def _resumed(work: Work, awaited: Any) -> Generator[Any, Any, None]:
    """A coroutine that has already asked to wait for `awaited`, from there on."""
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
