"""Slow, stalled and half-closed watchers: they cost bounded memory and do not delay others."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import socket
import ssl
import time
from pathlib import Path

from tests.live import Pki
from tests.soak.sizes import Note
from tests.soak.soaked import memory, serving
from tests.watching import MAPS, Connection

STATE, CHANGES, SIZE = 400, 600, 50_000
EACH = 40
"""Number of watchers of each type."""
MERGE = "application/merge-patch+json"


async def slow(connection: Connection) -> None:
    """Reads a little at intervals."""
    assert connection.reader is not None
    with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
        while await connection.reader.read(8192):  # noqa: ASYNC110
            await asyncio.sleep(0.2)


async def prompt(connection: Connection, delays: list[float]) -> None:
    async for event in connection.events():
        said = event["object"].get("data", {}).get("at")
        if event["type"] == "MODIFIED" and said is not None:
            delays.append(time.time() - float(said))


async def strain(port: int, pki: Pki, pid: int) -> tuple[list[float], list[float], float, float]:
    tls = ssl.create_default_context(cafile=str(pki.path("ca.crt")))
    writer = Connection(port, tls)
    pad, dice = "x" * SIZE, random.Random(1)
    for number in range(STATE):
        await writer.ask("POST", MAPS, {"metadata": {"name": f"m-{number}"}, "data": {"pad": pad}})

    async def delays(count: int) -> list[float]:
        """Delays of events at a watcher that reads promptly."""
        found: list[float] = []
        listed = await writer.ask("GET", f"{MAPS}?limit=1")
        version = listed["metadata"]["resourceVersion"]
        quick = Connection(port, tls)
        await quick.send("GET", f"{MAPS}?watch=1&resourceVersion={version}")
        hearing = asyncio.ensure_future(prompt(quick, found))
        for _ in range(count):
            name = f"{MAPS}/m-{dice.randrange(STATE)}"
            await writer.ask("PATCH", name, {"data": {"at": str(time.time())}}, MERGE)
        async with asyncio.timeout(60):
            while len(found) < count:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        hearing.cancel()
        quick.cut()
        return sorted(found)

    alone = await delays(200)
    before = memory(pid)
    version = (await writer.ask("GET", f"{MAPS}?limit=1"))["metadata"]["resourceVersion"]
    others: list[Connection] = []
    tasks = []
    for number in range(4 * EACH):
        connection = Connection(port, tls, limit=1 << 14)
        query = "" if number % 2 else f"&resourceVersion={version}"
        await connection.send("GET", f"{MAPS}?watch=1{query}")
        assert connection.writer is not None
        if number % 4 < 2:
            # The client reads no more after its small buffer is full.
            connection.writer.transport.pause_reading()  # type: ignore[attr-defined]
        elif number % 4 == 2:
            tasks.append(asyncio.ensure_future(slow(connection)))
        else:
            with socket.socket(fileno=os.dup(connection.writer.get_extra_info("socket").fileno())) as raw:
                raw.shutdown(socket.SHUT_WR)
        others.append(connection)
    beside = await delays(CHANGES)
    after = memory(pid)
    for task in tasks:
        task.cancel()
    for connection in others:
        connection.cut()
    writer.cut()
    return alone, beside, before, after


def told(name: str, delays: list[float]) -> str:
    p99 = delays[int(len(delays) * 0.99)]
    return f"{name}: p50 {delays[len(delays) // 2] * 1000:.1f}, p99 {p99 * 1000:.1f}, most {delays[-1] * 1000:.1f} ms"


def test_stalled_watchers_cost_bounded_memory_and_do_not_delay_others(
    server_pki: Pki, tmp_path: Path, note: Note
) -> None:
    with serving(tmp_path, server_pki) as (server, port):
        alone, beside, before, after = asyncio.run(strain(port, server_pki, server.process.pid))
        note(told("an event is late by, alone", alone))
        note(told(f"beside {4 * EACH} slow, stalled and half-closed watchers", beside))
        unread = f"{STATE * SIZE // 10**6} MB of state and {CHANGES * SIZE // 10**6} MB of changes unread"
        note(f"{before:.0f} MB before them, {after:.0f} MB with {unread}")
        assert "Traceback" not in server.output
    # The window of changes and the shared buffers. A copy per watcher would be gigabytes.
    assert after < before + 250
    assert beside[int(len(beside) * 0.99)] < alone[int(len(alone) * 0.99)] + 1.0
