"""RangeAllocation: allocated numbers of a range as one bitmap in the store.

Key and value are kube-apiserver's, so both can allocate from one etcd. Every change is a compare-and-swap of
the whole bitmap, so servers that share a store never allocate a number twice. Concurrent changes share one
write.
"""

from __future__ import annotations

import asyncio
import base64
import random
from collections.abc import Callable, Iterable
from typing import Any

import orjson

from kubist.api.resources.allocations import Snapshot
from kubist.model.codec import protobuf
from kubist.model.codec import protobuf_wire as wire
from kubist.model.meta.status import internal_error
from kubist.storage.store import Conflict, KeyValue, Store

Change = Callable[[int], tuple[int, Any]]
"""Function from a bitmap to the new bitmap and the result of the change."""


class RangeAllocation:
    """Allocates from `numbers`. `in_use` returns the numbers in use; it is called if the store has no record yet."""

    def __init__(
        self,
        store: Store,
        key: str,
        numbers: range,
        in_use: Callable[[], Iterable[int]],
        *,
        reserved: int = 0,
    ) -> None:
        self.numbers = numbers
        self.range = f"{numbers.start}-{numbers.stop - 1}"
        self._store = store
        self._key = key
        self._in_use = in_use
        self._reserved = reserved
        self._known: Snapshot | None = None
        self._waiting: list[tuple[Change, asyncio.Future[Any]]] = []
        self._writer: asyncio.Task[None] | None = None

    async def allocate(self, number: int) -> bool:
        """Allocates a number of the range. False if it is already allocated."""
        bit = 1 << (number - self.numbers.start)
        allocated: bool = await self._apply(lambda bits: (bits | bit, not bits & bit))
        return allocated

    async def allocate_any(self) -> int | None:
        """Allocates a random free number. Numbers of the reserved low part are used last. None if no number is
        free."""
        offset: int | None = await self._apply(self._pick)
        return None if offset is None else self.numbers.start + offset

    async def release(self, numbers: Iterable[int]) -> None:
        """Releases numbers. Free numbers and numbers outside the range are ignored."""
        mask = self.bitmap(numbers)
        if mask:
            await self._apply(lambda bits: (bits & ~mask, None))

    async def read(self) -> Snapshot:
        """Current record of the store. Creates the record if it does not exist."""
        record = await self._store.get(self._key)
        while record is None:
            bits = self.bitmap(self._in_use())
            try:
                revision = await self._store.create(self._key, _encoded(self.range, bits))
                return Snapshot(revision, self.range, bits)
            except Conflict as lost:
                record = lost.current
        return _decoded(record)

    async def replace(self, old: Snapshot, bits: int) -> bool:
        """Writes a bitmap for this server's range if `old` is still the newest record. Otherwise False."""
        try:
            await self._store.update(self._key, _encoded(self.range, bits), old.revision)
        except Conflict:
            return False
        return True

    def bitmap(self, numbers: Iterable[int]) -> int:
        """Bitmap of the numbers that are in the range."""
        bits = 0
        for number in numbers:
            if number in self.numbers:
                bits |= 1 << (number - self.numbers.start)
        return bits

    def allocated(self, snapshot: Snapshot) -> set[int]:
        """Allocated numbers of a snapshot, by the range of the snapshot."""
        start, bits = int(snapshot.range.partition("-")[0]), snapshot.bits
        return {start + offset for offset in range(bits.bit_length()) if bits >> offset & 1}

    def _pick(self, bits: int) -> tuple[int, int | None]:
        size = len(self.numbers)
        free = ~bits & ((1 << size) - 1)
        for first, end in ((self._reserved, size), (0, self._reserved)):
            part = (free & ((1 << end) - 1)) >> first
            if part:
                start = random.randrange(end - first)
                after = part >> start << start or part
                offset = first + (after & -after).bit_length() - 1
                return bits | 1 << offset, offset
        return bits, None

    async def _apply(self, change: Change) -> Any:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append((change, future))
        if self._writer is None:
            self._writer = asyncio.create_task(self._write())
        return await future

    async def _write(self) -> None:
        """Writes the waiting changes. Changes that arrive meanwhile share the next write."""
        try:
            while self._waiting:
                waiting, self._waiting = self._waiting, []
                waiting = [pair for pair in waiting if not pair[1].done()]
                try:
                    results = await self._swap([change for change, _ in waiting])
                except Exception as error:
                    self._known = None
                    for _, future in waiting:
                        if not future.done():
                            future.set_exception(error)
                    continue
                for (_, future), result in zip(waiting, results, strict=True):
                    if not future.done():
                        future.set_result(result)
        finally:
            self._writer = None

    async def _swap(self, changes: list[Change]) -> list[Any]:
        """Writes the changes with compare-and-swap, and returns their results."""
        known, fresh = self._known, False
        while True:
            if known is None:
                known, fresh = await self.read(), True
            if known.range != self.range:
                raise internal_error("the provided range does not match the current range")
            bits, results = known.bits, []
            for change in changes:
                bits, result = change(bits)
                results.append(result)
            if bits == known.bits and fresh:
                self._known = known
                return results
            if bits == known.bits:
                # Read again: nothing was written, so no compare-and-swap has proved that the bitmap is still the
                # newest.
                known = None
                continue
            try:
                revision = await self._store.update(self._key, _encoded(self.range, bits), known.revision)
            except Conflict as lost:
                known, fresh = None if lost.current is None else _decoded(lost.current), True
                continue
            self._known = Snapshot(revision, self.range, bits)
            return results


def _encoded(span: str, bits: int) -> bytes:
    data = bits.to_bytes((bits.bit_length() + 7) // 8, "big")
    record = {"kind": "RangeAllocation", "apiVersion": "v1", "metadata": {}, "range": span}
    return orjson.dumps({**record, "data": base64.b64encode(data).decode()})


def _decoded(record: KeyValue) -> Snapshot:
    """Decodes a record in JSON or in protobuf, kube-apiserver's default."""
    if record.value.startswith(protobuf.MAGIC):
        fields = dict(wire.fields(protobuf.unwrap(record.value).raw, "RangeAllocation"))
        span, data = fields.get(2, b""), fields.get(3, b"")
        assert isinstance(span, bytes) and isinstance(data, bytes)
        return Snapshot(record.mod_revision, span.decode(), int.from_bytes(data, "big"))
    parsed = orjson.loads(record.value)
    data = base64.b64decode(parsed.get("data") or "")
    return Snapshot(record.mod_revision, parsed.get("range") or "", int.from_bytes(data, "big"))
