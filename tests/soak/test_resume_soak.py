"""Nothing missed: a million events delivered to a hundred watchers that come and go.

An event counts once for each watcher that it was delivered to; those that a watcher passed over, because it came back
too late and had to list again, do not. `KUBIST_SOAK_WRITES` says how much is written.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from live import Pki
from watching import forgetful, watch_through

WRITES = int(os.environ.get("KUBIST_SOAK_WRITES", "20000"))


def test_a_million_events_reach_watchers_that_come_and_go(server_pki: Pki, tmp_path: Path) -> None:
    with forgetful(server_pki, tmp_path, window=100, history=2.0) as port:
        report = asyncio.run(watch_through(port, server_pki, WRITES, watchers=100, patience=3.0))
    print(report)
    assert report.expired and report.bookmarks
    assert report.deliveries > 40 * WRITES
