"""Protocol between a store and its remote clients: frames of a length and a tuple on a Unix socket; the revision in
shared memory.

Both ends are the same program on the same machine, so tuples use `marshal`, which is the fastest. Requests are
`(id, verb, *arguments)`, responses `(id, kind, value)`. Messages with the id FEED are changes, not responses.
"""

from __future__ import annotations

import asyncio
import marshal
import mmap
import struct
from collections.abc import Callable, Iterable
from typing import Any, cast

from kubist.storage.store import (
    Batch,
    Compacted,
    Conflict,
    DamageFound,
    Event,
    FutureRevision,
    KeyValue,
    Scan,
    StoreError,
    Unavailable,
)

FEED = 0
_LENGTH = struct.Struct("=I")

Message = tuple[Any, ...]
Pair = tuple[str, bytes, int, int]


def frame(*message: Any) -> bytes:
    payload = marshal.dumps(message)
    return _LENGTH.pack(len(payload)) + payload


class Frames(asyncio.Protocol):
    """One end of a connection: delivers whole messages and applies backpressure.

    Frames sent in one turn of the loop are written together, because a system call costs more than a frame.
    """

    def __init__(self, received: Callable[[Message], None], lost: Callable[[], None]) -> None:
        self._received = received
        self._lost = lost
        self._buffer = bytearray()
        self._sending: list[bytes] = []
        self._transport: asyncio.Transport | None = None
        self._room: asyncio.Future[None] | None = None

    @property
    def open(self) -> bool:
        return self._transport is not None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, _error: Exception | None) -> None:
        self._transport = None
        self.resume_writing()
        self._lost()

    def close(self) -> None:
        self._flush()
        if self._transport is not None:
            self._transport.close()

    def send(self, data: bytes) -> None:
        if not self._sending:
            asyncio.get_running_loop().call_soon(self._flush)
        self._sending.append(data)

    def _flush(self) -> None:
        sending, self._sending = self._sending, []
        if self._transport is not None and sending:
            # Not writelines: before 3.12.9 and 3.13.2 asyncio's never calls pause_writing (CVE-2024-12254).
            self._transport.write(b"".join(sending))

    def pause_writing(self) -> None:
        self._room = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        if self._room is not None:
            self._room.set_result(None)
            self._room = None

    async def drained(self) -> None:
        """Waits until the peer has read most of the sent data."""
        if self._room is not None:
            await asyncio.shield(self._room)

    def data_received(self, data: bytes) -> None:
        if self._buffer:
            self._buffer += data
            data = self._buffer  # type: ignore[assignment]
        position, end = 0, len(data)
        view = memoryview(data)
        while end - position >= _LENGTH.size:
            start = position + _LENGTH.size
            stop = start + _LENGTH.unpack_from(data, position)[0]
            if stop > end:
                break
            self._received(marshal.loads(view[start:stop]))
            position = stop
        view.release()
        if data is self._buffer:
            del self._buffer[:position]
        elif position < end:
            self._buffer += data[position:]


def pair(kv: KeyValue | None) -> Pair | None:
    return None if kv is None else (kv.key, kv.value, kv.create_revision, kv.mod_revision)


def key_value(raw: Pair | None) -> KeyValue | None:
    return None if raw is None else KeyValue(*raw)


def scan(page: Scan) -> Message:
    return page.revision, [pair(kv) for kv in page.items], page.more


def read_scan(message: Message) -> Scan:
    revision, items, more = message
    return Scan(revision, [KeyValue(*item) for item in items], more)


def batch(value: Batch) -> Message:
    return value.revision, [(e.revision, e.key, pair(e.kv), pair(e.prev)) for e in value.events]


def read_events(rows: Iterable[tuple[int, str, Pair | None, Pair | None]]) -> list[Event]:
    return [Event(revision, key, key_value(kv), key_value(prev)) for revision, key, kv, prev in rows]


def failure(error: Exception) -> tuple[str, Any]:
    """Error of the store as kind and value."""
    if isinstance(error, Conflict):
        return "conflict", pair(error.current)
    if isinstance(error, Compacted):
        return "compacted", error.revision
    if isinstance(error, FutureRevision):
        return "future", error.revision
    if isinstance(error, DamageFound):
        return "damaged", str(error)
    return "unavailable" if isinstance(error, StoreError) else "refused", str(error)


def read_failure(kind: str, value: Any) -> Exception:
    if kind == "conflict":
        return Conflict(key_value(value))
    if kind == "compacted":
        return Compacted(value)
    if kind == "future":
        return FutureRevision(value)
    if kind == "damaged":
        return DamageFound(value)
    return Unavailable(value) if kind == "unavailable" else ValueError(value)


class SharedRevision:
    """Newest revision of a store in shared memory, so that a consistent read needs no request.

    The owner raises it before any process learns of a change. A later reader therefore cannot miss that change. It is
    an aligned 64-bit number, which is read and written atomically. Created before the processes that share it
    are forked."""

    __slots__ = ("_cell", "_memory")

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, mmap.PAGESIZE)
        self._cell = memoryview(self._memory).cast("Q")

    @property
    def value(self) -> int:
        return self._cell[0]

    def reach(self, revision: int) -> None:
        if revision > self._cell[0]:
            self._cell[0] = revision
