"""A server process that forgets early, for tests of watches: small windows in memory, little history in the store.

Run with the directory of the certificates, how many changes a collection keeps, and how many the store does; the
store is in the working directory.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import uvloop

from kubist.server import Server
from live import Pki


async def main(directory: str, window: int, history: int) -> None:
    pki = Pki.__new__(Pki)
    pki.directory = Path(directory)
    server = Server(pki.config(data_dir="data"))
    await server.start()
    cache = server.registry.cache
    cache.window_changes = window
    print(f"serving on {server.port}", flush=True)
    while True:
        await asyncio.sleep(0.2)
        target = cache.revision - history
        if target > 0:
            await server.registry.store.compact(target)


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
