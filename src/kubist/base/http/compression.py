"""Compression of responses with gzip: the threshold, Accept-Encoding, and the work itself."""

from __future__ import annotations

import asyncio
import gzip

GZIP_THRESHOLD = 131_072
"""Size in bytes above which a response is compressed if the client accepts gzip. kube-apiserver has the same
threshold."""
OFF_LOOP = 1 << 20
"""Size in bytes from which compression runs in a thread."""
HEADERS = ((b"Content-Encoding", b"gzip"), (b"Vary", b"Accept-Encoding"))
_LEVEL = 1


def accepts_gzip(header: str) -> bool:
    """Whether Accept-Encoding lists `gzip`. An entry with a quality value does not count, as in the reference."""
    return bool(header) and any(part.strip() == "gzip" for part in header.split(","))


async def compressed(body: bytes) -> bytes:
    """Body compressed with gzip. A large one is compressed off the event loop."""
    if len(body) >= OFF_LOOP:
        return await asyncio.to_thread(compress, body)
    return compress(body)


def compress(body: bytes) -> bytes:
    """Body compressed with gzip, without a time stamp: equal bodies give equal bytes."""
    return gzip.compress(body, _LEVEL, mtime=0)
