"""Waiting for a condition that another thread or process brings about."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_for(
    condition: Callable[[], T],
    seconds: float = 60,
    *,
    pause: float = 0.005,
    explain: Callable[[], object] = lambda: "the condition is still false",
) -> T:
    """Returns the result of `condition` as soon as it is true. Fails after `seconds`, with the text of `explain`."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"after {seconds} seconds: {explain()}"
        time.sleep(pause)
    return found
