"""Blocking calls in coroutines of tests: in a thread, with asyncio and with trio."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from kubist.base.offload import on_loop

# pytest omits the frames of this module from its reports.
__tracebackhide__ = True

T = TypeVar("T")


async def in_thread(call: Callable[[], T]) -> T:
    """Result of a call that blocks, without blocking the event loop of the caller."""
    trio: Any = sys.modules.get("trio")
    if trio is not None and on_loop() is None:
        return await trio.to_thread.run_sync(call, abandon_on_cancel=True)  # type: ignore[no-any-return]
    return await asyncio.to_thread(call)
