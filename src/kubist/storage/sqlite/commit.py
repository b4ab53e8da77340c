"""Commit thread: runs COMMIT, the only statement of the SQLite store that waits for the disk.

It runs one COMMIT at a time and reports to the event loop. It runs no other statement.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from queue import SimpleQueue

Done = Callable[[sqlite3.Error | None], None]


def commit(connection: sqlite3.Connection) -> sqlite3.Error | None:
    """Commits the open transaction. The error, or None."""
    try:
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        return error
    return None


class CommitThread:
    def __init__(self, connection: sqlite3.Connection, loop: asyncio.AbstractEventLoop) -> None:
        self._connection = connection
        self._loop = loop
        self._requests: SimpleQueue[Done | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="sqlite-commit", daemon=True)
        self._thread.start()

    def commit(self, done: Done) -> None:
        """Commits, then calls `done` on the event loop."""
        self._requests.put(done)

    def stop(self) -> None:
        self._requests.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (done := self._requests.get()) is not None:
            error = commit(self._connection)
            try:
                self._loop.call_soon_threadsafe(done, error)
            except RuntimeError:  # the loop was closed without closing the store
                return
