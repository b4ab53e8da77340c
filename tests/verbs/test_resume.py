"""Resumed watches: watchers that disconnect at random and resume get every change once, in order.

`make soak` does the same with a million events.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.live import Pki
from tests.watching import forgetful, watch_through

WRITES, WATCHERS = 800, 40


def test_resumed_watches_get_every_event_once(server_pki: Pki, tmp_path: Path) -> None:
    with forgetful(server_pki, tmp_path, window=30, history=0.5) as port:
        report = asyncio.run(watch_through(port, server_pki, WRITES, WATCHERS, patience=1.0))
    print(report)
    assert report.resumed > WATCHERS
