"""Server process with short history, for tests of watches: small windows in memory, few seconds in the store.

Arguments: the directory of the certificates, the number of changes that a collection keeps, and the seconds of
history of the store. The store is in the working directory.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from pathlib import Path

import uvloop

from kubist.server.server import Server
from tests.live import Pki


async def main(directory: str, window: int, history: float) -> None:
    pki = Pki.__new__(Pki)
    pki.directory = Path(directory)
    server = Server(pki.config(data_dir="data"))
    await server.start()
    cache = server.registry.cache
    cache.window_changes = window
    print(f"serving on {server.port}", flush=True)
    marks: deque[int] = deque(maxlen=10)
    while True:
        marks.append(cache.revision)
        await asyncio.sleep(history / 10)
        if len(marks) == 10:
            await server.registry.store.compact(marks[0])


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
