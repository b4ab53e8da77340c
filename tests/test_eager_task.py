"""Eager coroutines: their run before the first wait, and the task afterwards."""

from __future__ import annotations

import asyncio
import functools
import re
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kubist
from kubist.base.eager_task import begin, timeout


def on_loop(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    @functools.wraps(test)
    def run() -> None:
        asyncio.run(test())

    del run.__wrapped__
    return run


@on_loop
async def test_coroutine_without_wait_is_done_when_begin_returns() -> None:
    done: list[str] = []

    async def work() -> None:
        done.append("at once")

    assert begin(work(), asyncio.get_running_loop()) is None
    assert done == ["at once"]


@on_loop
async def test_waiting_coroutine_continues_in_a_task() -> None:
    loop = asyncio.get_running_loop()
    first: asyncio.Future[int] = loop.create_future()
    seen: list[object] = []

    async def work() -> None:
        seen.append(await first)
        await asyncio.sleep(0)
        seen.append(asyncio.current_task())

    task = begin(work(), loop)
    assert task is not None and not seen
    first.set_result(1)
    await task
    assert seen == [1, task]


@on_loop
async def test_failure_of_an_awaited_future_reaches_the_coroutine() -> None:
    loop = asyncio.get_running_loop()
    first: asyncio.Future[None] = loop.create_future()
    second: asyncio.Future[str] = loop.create_future()
    seen: list[str] = []

    async def work() -> None:
        try:
            await first
        except ValueError as error:
            seen.append(str(error))
        seen.append(await second)

    task = begin(work(), loop)
    assert task is not None
    first.set_exception(ValueError("no"))
    await asyncio.sleep(0.01)
    second.set_result("yes")
    await task
    assert seen == ["no", "yes"]


@on_loop
async def test_failure_may_end_the_coroutine() -> None:
    loop = asyncio.get_running_loop()
    awaited: asyncio.Future[None] = loop.create_future()

    async def work() -> None:
        try:
            await awaited
        except ValueError:
            return

    task = begin(work(), loop)
    assert task is not None
    awaited.set_exception(ValueError("no"))
    await task


@on_loop
async def test_cancelling_the_task_cancels_the_waiting_coroutine() -> None:
    seen: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            seen.append("left")

    task = begin(work(), asyncio.get_running_loop())
    assert task is not None
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["left"]


@on_loop
async def test_timeout_works_before_the_first_wait() -> None:
    seen: list[str] = []

    async def work() -> None:
        try:
            async with timeout(0.01):
                await asyncio.Event().wait()
        except TimeoutError:
            seen.append("late")
        async with timeout(60), timeout(None):
            seen.append("in time")

    task = begin(work(), asyncio.get_running_loop())
    assert task is not None
    await task
    assert seen == ["late", "in time"]


@on_loop
async def test_coroutine_does_not_run_in_the_task_of_its_caller() -> None:
    caller = asyncio.current_task()
    tasks: list[object] = []

    async def work() -> None:
        tasks.append(asyncio.current_task())

    begin(work(), asyncio.get_running_loop())
    assert caller not in tasks
    assert asyncio.current_task() is caller


@on_loop
async def test_timeout_lets_errors_and_cancellation_pass() -> None:
    with pytest.raises(KeyError):
        async with timeout(60):
            raise KeyError("raised")

    async def work() -> None:
        async with timeout(60):
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_nothing_else_needs_a_task_before_the_first_wait() -> None:
    """On Python 3.11, a request has no task before its first wait, so asyncio's own timeouts and task groups fail."""
    needs_task = re.compile(
        r"\basyncio\.(timeout|timeout_at|TaskGroup|Timeout)\(|^from asyncio import", re.MULTILINE
    )
    source = Path(kubist.__file__).parent
    users = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if needs_task.search(path.read_text())
    }
    assert users == {"base/eager_task.py"}


STEPS = st.lists(
    st.sampled_from(["note", "sleep", "result", "failure", "caught failure", "raise"]), max_size=6
)


async def follow(steps: list[str], log: list[str]) -> None:
    loop = asyncio.get_running_loop()
    for step in steps:
        log.append(step)
        future: asyncio.Future[str] = loop.create_future()
        match step:
            case "sleep":
                await asyncio.sleep(0)
            case "result":
                loop.call_soon(future.set_result, "done")
                log.append(await future)
            case "failure":
                loop.call_soon(future.set_exception, ValueError("failed"))
                await future
            case "caught failure":
                loop.call_soon(future.set_exception, ValueError("failed"))
                try:
                    await future
                except ValueError as error:
                    log.append(str(error))
            case "raise":
                raise KeyError("raised")


async def log_of(steps: list[str], *, eager: bool) -> list[str]:
    """Steps that a coroutine made, and how it ended."""
    log: list[str] = []
    loop = asyncio.get_running_loop()
    try:
        task = begin(follow(steps, log), loop) if eager else loop.create_task(follow(steps, log))
        if task is not None:
            await task
    except (KeyError, ValueError) as error:
        log.append(repr(error))
    return log


@given(STEPS)
def test_eager_coroutine_makes_the_steps_of_a_task(steps: list[str]) -> None:
    assert asyncio.run(log_of(steps, eager=True)) == asyncio.run(log_of(steps, eager=False))
