"""Waiting in the programs of this folder."""

import time
from collections.abc import Callable


def eventually(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.02)
