"""Server process that reports its memory, for tests of caches.

Its argument is the directory of the certificates. It answers every line on standard input with one line of
JSON: the resident memory in bytes, the length of all keys in bounded caches, and the number of long strings.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import types
from pathlib import Path

import uvloop

from kubist.base.caching import BoundedCache, key_length
from kubist.server.server import Server
from tests.live import Pki

LONG = 100_000


def long_strings() -> int:
    """Number of strings of at least `LONG` characters or bytes that something refers to."""
    found: set[int] = set()
    # Asked for the referents of some extension modules, CPython 3.12 crashes. Their dicts are objects of their own.
    reached = [obj for obj in gc.get_objects() if not isinstance(obj, types.ModuleType)]
    while reached:
        for part in gc.get_referents(reached.pop()):
            if isinstance(part, (str, bytes)):
                if len(part) >= LONG:
                    found.add(id(part))
            elif isinstance(part, (dict, tuple)) and not gc.is_tracked(part):
                reached.append(part)
    return len(found)


def report() -> str:
    gc.collect()
    caches = [obj for obj in gc.get_objects() if isinstance(obj, BoundedCache)]
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    keys = sum(sum(map(key_length, cache)) for cache in caches)
    longest = max((key_length(key) for cache in caches for key in cache), default=0)
    return json.dumps(
        {
            "rss": pages * 4096,
            "caches": len(caches),
            "keys": keys,
            "longest": longest,
            "long strings": long_strings(),
        }
    )


async def main(directory: str) -> None:
    pki = Pki.__new__(Pki)
    pki.directory = Path(directory)
    server = Server(pki.config())
    await server.start()
    print(server.port, flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        print(report(), flush=True)
    await server.stop(0.1)


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1]))
