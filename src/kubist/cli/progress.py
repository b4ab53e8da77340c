"""Progress of long steps, on standard error.

A step that ends within a second prints nothing. On a terminal, one line is updated ten times a second at most and
removed at the end. Elsewhere, a plain line appears after 2 seconds, and then after twice the time, so that even an
hour has about a dozen lines.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator

from kubist.base.terminal import is_terminal, paint

QUIET_SECONDS = 1.0
_UPDATE_SECONDS = 0.1
_FIRST_LINE_SECONDS = 2.0


class Progress:
    """Progress of one step. `update` may be called as often as needed: most calls only read a clock."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._start = time.monotonic()
        self._terminal = is_terminal(sys.stderr)
        self._next = self._start + (QUIET_SECONDS if self._terminal else _FIRST_LINE_SECONDS)
        self._is_visible = False

    def update(self, done: int = 0, total: int = 0, unit: str = "") -> None:
        """`done` of `total` units; without a total only the number, without a unit only the time."""
        now = time.monotonic()
        if now < self._next:
            return
        elapsed = now - self._start
        amount = ""
        if unit and total:
            amount = f" {min(done, total) * 100 // total} % ({done:,} of {total:,} {unit})"
        elif unit:
            amount = f" {done:,} {unit}"
        line = f"{self._label} …{amount} {elapsed:.0f} s"
        if self._terminal:
            self._next = now + _UPDATE_SECONDS
            sys.stderr.write(f"\r{paint(line[: _columns() - 1], 'dim', stream=sys.stderr)}\x1b[K")
            self._is_visible = True
        else:
            self._next = self._start + elapsed * 2
            sys.stderr.write(line + "\n")
        sys.stderr.flush()

    def end(self) -> None:
        """Removes the line from the terminal."""
        if self._is_visible:
            self._is_visible = False
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


@contextlib.contextmanager
def step(label: str) -> Iterator[Progress]:
    """Progress of the block."""
    progress = Progress(label)
    try:
        yield progress
    finally:
        progress.end()


@contextlib.contextmanager
def sampled(label: str, measure: Callable[[], tuple[int, int, str]]) -> Iterator[Callable[[], None]]:
    """Progress of a block that does not report by itself: a thread measures it, after a second and then ten times
    a second. The block may end the display early by calling the yielded function."""
    over = threading.Event()

    def show() -> None:
        if over.wait(QUIET_SECONDS):
            return
        while not over.wait(_UPDATE_SECONDS):
            done, total, unit = measure()
            if done or not unit:  # zero units say nothing
                progress.update(done, total, unit)

    progress = Progress(label)
    thread = threading.Thread(target=show, name="progress", daemon=True)
    thread.start()

    def end() -> None:
        if not over.is_set():
            over.set()
            thread.join()
            progress.end()

    try:
        yield end
    finally:
        end()
