"""Random UUIDs, for objects and for requests. They are drawn many at a time and given out once each."""

from __future__ import annotations

import os


def new_uid() -> str:
    """A random UUID."""
    while True:
        try:
            return _uids.pop()
        except IndexError:
            _uids.extend(_draw_uids(64))


def _draw_uids(number: int) -> list[str]:
    """UUIDs without the objects that `uuid.uuid4` makes of them on the way; the system is asked once for all."""
    drawn = os.urandom(16 * number).hex()
    texts = [drawn[at : at + 32] for at in range(0, len(drawn), 32)]
    return [f"{t[:8]}-{t[8:12]}-4{t[13:16]}-{'89ab'[int(t[16], 16) & 3]}{t[17:20]}-{t[20:]}" for t in texts]


_uids: list[str] = []
"""Drawn and not yet given out. A forked process draws its own."""
os.register_at_fork(after_in_child=_uids.clear)
