"""A million events reach a hundred watchers that disconnect and resume.

An event counts once per watcher that received it. Events do not count that a watcher skipped because it resumed
too late and had to list again. `KUBIST_SOAK_WRITES` sets the number of writes (short: 2,000).
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.live import Pki
from tests.soak.sizes import Note, size
from tests.watching import forgetful, watch_through

WRITES = size("WRITES", 20_000, 2_000)


def test_every_event_reaches_resuming_watchers(server_pki: Pki, tmp_path: Path, note: Note) -> None:
    with forgetful(server_pki, tmp_path, window=100, history=2.0) as port:
        report = asyncio.run(watch_through(port, server_pki, WRITES, watchers=100, patience=3.0))
    note(report)
    assert report.expired and report.bookmarks
    assert report.deliveries > 40 * WRITES
