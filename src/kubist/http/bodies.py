"""Large bodies in pieces that the transport likes: neither thousands of tiny writes nor one huge one."""

from __future__ import annotations

from collections.abc import Iterator

WINDOW = 256 * 1024


def size(chunks: list[bytes]) -> int:
    return sum(map(len, chunks))


def windows(head: bytes, body: bytes | list[bytes], window: int = WINDOW) -> Iterator[bytes]:
    """`head` and `body` as pieces of about `window` bytes; only small chunks are copied together."""
    pending = [head] if head else []
    pending_size = len(head)
    for chunk in [body] if isinstance(body, bytes) else body:
        if len(chunk) > window:
            if pending:
                yield b"".join(pending)
                pending, pending_size = [], 0
            for offset in range(0, len(chunk), window):
                yield chunk[offset : offset + window]
            continue
        pending.append(chunk)
        pending_size += len(chunk)
        if pending_size >= window:
            yield b"".join(pending)
            pending, pending_size = [], 0
    if pending:
        yield b"".join(pending)
