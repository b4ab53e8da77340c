"""Durable creates per second of each store, with 1, 16 and 64 concurrent writers.

Run by hand: `python benchmarks/store.py [memory] [sqlite] [etcd=http://127.0.0.1:2379]`.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time

import uvloop

from kubist.storage.etcd.store import EtcdStore
from kubist.storage.memory import MemoryStore
from kubist.storage.sqlite.store import SqliteStore
from kubist.storage.store import Store

WRITERS = (1, 16, 64)
SECONDS = 2.0
VALUE = os.urandom(1700).hex().encode()


async def creates(store: Store, writers: int) -> tuple[float, float]:
    """Creates per second, and microseconds of this process's CPU for each."""
    run = f"/registry/bench/{os.urandom(4).hex()}"
    count = 0

    async def write(writer: int) -> None:
        nonlocal count
        number = 0
        while time.perf_counter() < end:
            number += 1
            await store.create(f"{run}/{writer}-{number}", VALUE)
            count += 1

    begin, cpu = time.perf_counter(), time.process_time()
    end = begin + SECONDS
    await asyncio.gather(*(write(writer) for writer in range(writers)))
    return count / (time.perf_counter() - begin), (time.process_time() - cpu) / count * 1e6


async def measure(name: str, store: Store) -> None:
    await store.open()
    try:
        for writers in WRITERS:
            rate, cpu = await creates(store, writers)
            print(f"{name:8} {writers:3} writers  {rate:8,.0f} creates/s  {cpu:6.1f} µs CPU each", flush=True)
    finally:
        await store.close()


def main() -> None:
    for wanted in sys.argv[1:] or ["memory", "sqlite"]:
        name, _, endpoints = wanted.partition("=")
        with tempfile.TemporaryDirectory() as directory:
            store: Store
            if name == "etcd":
                store = EtcdStore(endpoints.split(","))
            else:
                store = MemoryStore() if name == "memory" else SqliteStore(f"{directory}/kubist.db")
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(measure(name, store))


if __name__ == "__main__":
    main()
