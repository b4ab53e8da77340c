"""Known heads: recognition of a header block that the connection has parsed before. An optimisation of `reader.py`.

Rule: `reader.py` parses and checks every request with llhttp. This module adds no rule. It recognizes a request
only if llhttp and the checks of `reader.py` would give the same request; all other bytes go to llhttp.

Optimisation: a client repeats its headers. If the bytes of a header block equal a block that was parsed before on
the same connection, the parsed headers are used again, and only the request line is read. A block is never cached
if one of its headers changes how the message is framed or how the connection goes on.

Gain: a request with five headers is parsed with 19,000 instructions instead of 56,000. A get takes about 105,000
more, without transport (`benchmarks/optimisations.py`). `tests/http/test_known_heads.py` compares requests with and
without this module.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kubist.base.caching import BoundedCache
from kubist.base.http.messages import Request

if TYPE_CHECKING:
    from kubist.base.http.connection import Connection

_LINE = re.compile(rb"(GET|POST|PUT|PATCH|DELETE) (/[\w/.~:?&=%,+*-]*) HTTP/1\.1", re.ASCII)
"""Request lines that are read without the parser: common methods, and targets that need no check."""
_FRAMING = frozenset(("connection", "expect", "proxy-connection", "transfer-encoding", "upgrade"))
"""Headers that change how the message or the connection is handled. Blocks with these are never cached."""
_BLOCKS = 16
_BLOCK_BYTES = 4096
_LINE_BYTES = 4096


class KnownHeads:
    """Header blocks that one connection has sent, with their parsed headers."""

    __slots__ = ("_body_bytes", "_parsed")

    def __init__(self, body_bytes: int) -> None:
        self._body_bytes = body_bytes
        """Limit of a body. Longer bodies are left to the reader, which rejects them."""
        self._parsed: BoundedCache[bytes, tuple[dict[str, str], int]] = BoundedCache(
            entries=_BLOCKS, key_length=_BLOCK_BYTES
        )
        """Parsed headers and body length, by the bytes of the header block."""

    def recognize(self, data: bytes, connection: Connection) -> Request | None:
        """Request of these bytes if they are one whole request with a known header block, else None."""
        line = data.find(b"\r\n", 0, _LINE_BYTES)
        if line < 0:
            return None
        end = data.find(b"\r\n\r\n", line)
        known = self._parsed.get(data[line:end]) if end > 0 else None
        if known is None or len(data) != end + 4 + known[1]:
            return None
        match = _LINE.fullmatch(data, 0, line)
        if match is None:
            return None
        method, target = match.groups()
        path, _, query = target.decode("ascii").partition("?")
        if "%" in path:
            return None
        return Request(
            method.decode("ascii"),
            path,
            query,
            known[0],
            data[end + 4 :],
            connection.peer,
            "1.1",
            connection.peer_certificates,
            connection.scratch,
        )

    def add(self, data: bytes, headers: dict[str, str]) -> None:
        """Caches the header block of an HTTP/1.1 request. `data` has only this request, and no header twice."""
        line = data.find(b"\r\n")
        end = data.find(b"\r\n\r\n", line)
        if not 0 < line < end < _BLOCK_BYTES or not _FRAMING.isdisjoint(headers):
            return
        block, length = data[line:end], int(headers.get("content-length", "0"))
        # A bare line feed also ends a header, so the number of lines must be that of the headers.
        if block.count(b"\n") == len(headers) and length <= self._body_bytes:
            self._parsed[block] = headers, length
