"""Random UUIDs for objects and requests. They are generated in batches of 64."""

from __future__ import annotations

import os


def new_uid() -> str:
    """Random UUID (version 4)."""
    while True:
        try:
            return _uids.pop()
        except IndexError:
            _uids.extend(_draw_uids(64))


def _draw_uids(number: int) -> list[str]:
    """Random UUIDs as text, with one system call and without `uuid.UUID` objects."""
    drawn = os.urandom(16 * number).hex()
    texts = [drawn[at : at + 32] for at in range(0, len(drawn), 32)]
    return [f"{t[:8]}-{t[8:12]}-4{t[13:16]}-{'89ab'[int(t[16], 16) & 3]}{t[17:20]}-{t[20:]}" for t in texts]


_uids: list[str] = []
"""Generated, unused UUIDs. A forked process starts with none."""
os.register_at_fork(after_in_child=_uids.clear)
