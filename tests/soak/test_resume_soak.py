"""Nothing missed: a million events delivered to a hundred watchers that come and go.

An event counts once for each watcher that it was delivered to; those that a watcher passed over, because it came back
too late and had to list again, do not. `KUBIST_SOAK_WRITES` says how much is written (short: 2,000).
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from sizes import Note, size

from live import Pki
from watching import forgetful, watch_through

WRITES = size("WRITES", 20_000, 2_000)


def test_every_event_reaches_watchers_that_come_and_go(server_pki: Pki, tmp_path: Path, note: Note) -> None:
    with forgetful(server_pki, tmp_path, window=100, history=2.0) as port:
        report = asyncio.run(watch_through(port, server_pki, WRITES, watchers=100, patience=3.0))
    note(report)
    assert report.expired and report.bookmarks
    assert report.deliveries > 40 * WRITES
