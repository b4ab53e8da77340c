"""Store on etcd 3.4 or later, for several machines.

One etcd watch of the whole prefix feeds every watch of this process. If other programs write to the same etcd,
the store writes a fence key of its own to learn that the watch has reached a revision.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from kubist.base import eager_task
from kubist.storage.etcd import messages as pb
from kubist.storage.etcd.client import CALL_SECONDS, EtcdClient, LeaseNotFound, credentials
from kubist.storage.etcd.compact import compact, compact_forever
from kubist.storage.hub import Hub
from kubist.storage.store import (
    Batch,
    Compacted,
    Conflict,
    Event,
    FutureRevision,
    KeyValue,
    OpenFailed,
    Scan,
    StoreError,
    Unavailable,
)

FENCE = "kubist_fence_key"
OPEN_SECONDS = 10.0
PAGE_KEYS = 500
PROGRESS_SECONDS = 0.001
LAG_SECONDS = 0.05
RETRY_SECONDS = 0.25
_SHARE = 20
"""A key may live longer than its ttl by 1/_SHARE of the ttl, at most _SHARE_SECONDS."""
_SHARE_SECONDS = 60


class _Leases:
    """Leases for expiring keys. Keys with the same ttl that are written within a short time share a lease, because a
    lease costs etcd more than a key."""

    def __init__(self, client: EtcdClient) -> None:
        self._client = client
        self._granted: dict[int, tuple[float, asyncio.Task[int]]] = {}

    async def get(self, ttl: int) -> int:
        """ID of a lease that ends `ttl` seconds from now or slightly later."""
        shared = min(ttl // _SHARE, _SHARE_SECONDS)
        until, grant = self._granted.get(ttl, (0.0, None))
        if grant is None or time.monotonic() >= until or (grant.done() and _failed(grant)):
            grant = asyncio.ensure_future(self._grant(ttl + shared))
            self._granted[ttl] = time.monotonic() + shared, grant
        return await asyncio.shield(grant)

    def forget(self) -> None:
        """Drops all known leases because one expired too early."""
        self._granted.clear()

    async def _grant(self, ttl: int) -> int:
        response = await self._client.call("LeaseGrant", pb.LeaseGrantRequest(TTL=ttl))
        return int(response.ID)


def _failed(grant: asyncio.Task[int]) -> bool:
    return grant.cancelled() or grant.exception() is not None


class EtcdStore:
    """`Store` below `prefix` in the etcd at `endpoints`. `ca`, `cert` and `key` are paths of TLS files.

    `prefix` replaces `root`, with which all keys start: `/registry/pods/a` is stored as `/mine/pods/a`.

    A watch survives an outage of etcd as long as etcd keeps the missed history. A watch with a slow reader has
    a bounded queue; after an overflow it continues from etcd's history.
    """

    local = False

    def __init__(
        self,
        endpoints: list[str],
        *,
        prefix: str = "",
        root: str = "",
        ca: str | None = None,
        cert: str | None = None,
        key: str | None = None,
        compaction_interval: float = 300.0,
    ) -> None:
        self._endpoints = endpoints
        self._prefix = prefix
        self._root = root
        self._tls = ca, cert, key
        self._compaction_interval = compaction_interval
        self._hub = Hub()
        self._fence = f"{prefix}{'/' if root else ''}{FENCE}".encode()
        self._range = _range(prefix + "/" if root else prefix)
        self._open = False
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        self._client = EtcdClient(self._endpoints, credentials(*self._tls))
        self._leases = _Leases(self._client)
        self._asking: asyncio.Task[int] | None = None
        self._asking_next: asyncio.Task[int] | None = None
        self._fencing: asyncio.Task[None] | None = None
        self._newest_revision = 0
        self._following = asyncio.Event()
        self._trouble = "no answer"
        self._open = True
        self._tasks = [asyncio.create_task(self._follow())]
        if self._compaction_interval:
            self._tasks.append(asyncio.create_task(compact_forever(self._client, self._compaction_interval)))
        try:
            # etcd may be starting at the same time as this process.
            async with eager_task.timeout(OPEN_SECONDS):
                await self._following.wait()
        except TimeoutError:
            await self.close()
            raise OpenFailed(self._trouble) from None

    async def close(self) -> None:
        if not self._open:
            return
        self._open = False
        tasks = [task for task in (*self._tasks, self._fencing, self._asking, self._asking_next) if task]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._hub.fail("the store is closed")
        await self._client.close()

    async def revision(self) -> int:
        """Current revision from etcd. Callers that arrive while a request is under way share the next request.
        Watches then report progress soon."""
        self._check_open()
        if self._asking_next is None:
            self._asking_next = asyncio.create_task(self._ask(self._asking))
        revision = await asyncio.shield(self._asking_next)
        self._want(revision)
        return revision

    async def check(self) -> None:
        """Does nothing: writes do not depend on a disk of this machine."""

    async def request_progress(self) -> None:
        await self.revision()

    async def get(self, key: str, revision: int = 0) -> KeyValue | None:
        response = await self._range_call(pb.RangeRequest(key=self._encode(key), revision=revision))
        return self._key_value(response.kvs[0]) if response.kvs else None

    async def scan(self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0) -> Scan:
        items: list[KeyValue] = []
        first, end = _range(self._prefix + prefix[len(self._root) :])
        first = max(first, self._encode(start))
        while True:
            keys = min(limit - len(items), PAGE_KEYS) if limit else PAGE_KEYS
            request = pb.RangeRequest(key=first, range_end=end, limit=keys, revision=revision)
            response = await self._range_call(request)
            revision = revision or response.header.revision
            items += [self._key_value(kv) for kv in response.kvs if kv.key != self._fence]
            if not response.more or (limit and len(items) >= limit):
                return Scan(revision, items, response.more)
            first = response.kvs[-1].key + b"\0"

    async def create(self, key: str, value: bytes, *, ttl: int = 0) -> int:
        return await self._put(key, value, 0, ttl)

    async def update(self, key: str, value: bytes, expected: int, *, ttl: int = 0) -> int:
        return await self._put(key, value, expected or -1, ttl)

    async def delete(self, key: str, expected: int) -> int:
        request = pb.DeleteRangeRequest(key=self._encode(key))
        return await self._swap(key, expected or -1, pb.RequestOp(request_delete_range=request))

    async def compact(self, revision: int) -> None:
        self._check_open()
        try:
            await compact(self._client, revision)
        except FutureRevision:
            raise FutureRevision(await self.revision()) from None

    def watch(self, prefix: str, after: int) -> AsyncIterator[Batch]:
        return self._hub.watch(prefix, after, self._replay)

    # Reads and writes

    async def _ask(self, before: asyncio.Task[int] | None) -> int:
        if before is not None:
            await asyncio.wait([before])
        self._asking, self._asking_next = self._asking_next, None
        response = await self._client.call("Range", pb.RangeRequest(key=self._fence, count_only=True))
        return int(response.header.revision)

    async def _range_call(self, request: Any) -> Any:
        self._check_open()
        try:
            return await self._client.call("Range", request)
        except FutureRevision:
            raise FutureRevision(await self.revision()) from None
        except Compacted:
            raise Compacted(await self._oldest(request.revision)) from None

    async def _oldest(self, refused: int) -> int:
        """Oldest revision that etcd keeps. etcd reports it only to a watch."""
        try:
            async with (
                eager_task.timeout(CALL_SECONDS),
                contextlib.aclosing(self._client.watch(self._fence, b"", refused)) as responses,
            ):
                async for _ in responses:
                    continue
        except Compacted as error:
            return error.revision
        except TimeoutError:
            pass
        return refused + 1

    async def _put(self, key: str, value: bytes, expected: int, ttl: int) -> int:
        put = pb.PutRequest(key=self._encode(key), value=value)
        if not ttl:
            return await self._swap(key, expected, pb.RequestOp(request_put=put))
        self._check_open()
        put.lease = await self._leases.get(ttl)
        try:
            return await self._swap(key, expected, pb.RequestOp(request_put=put))
        except LeaseNotFound:
            self._leases.forget()
            put.lease = await self._leases.get(ttl)
            return await self._swap(key, expected, pb.RequestOp(request_put=put))

    async def _swap(self, key: str, expected: int, change: Any) -> int:
        """Makes `change` if the key's mod_revision is `expected`. 0 means absent; -1 never matches."""
        self._check_open()
        encoded = self._encode(key)
        request = pb.TxnRequest(
            compare=[pb.Compare(target=pb.TARGET_MOD, key=encoded, mod_revision=expected)],
            success=[change],
            failure=[pb.RequestOp(request_range=pb.RangeRequest(key=encoded))],
        )
        response = await self._client.call("Txn", request, repeatable=False)
        if not response.succeeded:
            kvs = response.responses[0].response_range.kvs
            raise Conflict(self._key_value(kvs[0]) if kvs else None)
        return int(response.header.revision)

    def _check_open(self) -> None:
        if not self._open:
            raise Unavailable("the store is closed")

    # Watches

    async def _follow(self) -> None:
        """Publishes every change while the store is open, across lost connections."""
        position: int | None = None
        while True:
            try:
                async for revision, events, changed in self._changes(position):
                    if position is None:
                        await self._begin(revision)
                    elif revision > position:
                        self._publish(revision, events, changed)
                    position = revision
            except Compacted:
                position = None
            except StoreError as error:
                self._trouble = str(error)
                await asyncio.sleep(RETRY_SECONDS)

    async def _begin(self, revision: int) -> None:
        """Restarts the hub at `revision` and ends all watches, which must read history.

        The fence is written after `revision`, so that a replay recognises the end of history.
        """
        await self._write_fence()
        self._hub.revision = self._last_change = revision
        self._hub.fail("etcd was away for longer than it keeps history")

    def _publish(self, revision: int, events: list[Event], changed: bool) -> None:
        if changed:
            self._last_change = revision
            self._following.set()
        self._hub.publish(revision, events)
        if 0 < self._newest_revision <= revision:
            self._newest_revision = 0
            self._hub.expect_progress(PROGRESS_SECONDS)

    async def _write_fence(self) -> None:
        await self._client.call("Put", pb.PutRequest(key=self._fence))

    async def _changes(self, after: int | None) -> AsyncGenerator[tuple[int, list[Event], bool], None]:
        """Tuples (revision, events, whether anything changed at it) in order, for the key range of this store.

        The first tuple only reports the start: `after`, or the current revision if `after` is None. The etcd
        watch starts at `after`, not at the next revision, so that etcd rejects it if history may be incomplete.
        """
        changes: list[Any] = []
        start = 0 if after is None else max(after, 1)
        position = after or 0
        async with contextlib.aclosing(self._client.watch(*self._range, start)) as responses:
            async for response in responses:
                if response.created:
                    position = response.header.revision if after is None else after
                    yield position, [], False
                    continue
                changes += response.events
                if response.fragment:
                    continue
                reached = changes[-1].kv.mod_revision if changes else response.header.revision
                if reached > position:
                    new = [change for change in changes if change.kv.mod_revision > position]
                    events = [self._event(change) for change in new if change.kv.key != self._fence]
                    yield reached, events, bool(changes)
                    position = reached
                changes = []

    async def _replay(self, prefix: str, after: int, target: int) -> AsyncIterator[Batch]:
        self._check_open()
        last = self._last_change
        if after < last:
            async with contextlib.aclosing(self._changes(after)) as history:
                async for revision, events, _ in history:
                    below = tuple(event for event in events if event.key.startswith(prefix))
                    if revision >= last:
                        yield Batch(max(revision, target), below)
                        return
                    if below:
                        yield Batch(revision, below)
        yield Batch(target, ())

    def _want(self, revision: int) -> None:
        """Requests progress of the watches up to `revision`, because a caller will wait for it."""
        if revision <= self._hub.revision:
            self._hub.expect_progress(PROGRESS_SECONDS)
            return
        self._newest_revision = max(self._newest_revision, revision)
        if self._prefix and (self._fencing is None or self._fencing.done()):
            self._fencing = asyncio.create_task(self._reach(revision))

    async def _reach(self, revision: int) -> None:
        """Writes the fence if a change outside the range of this store made `revision`, so that the watch
        reaches it."""
        await asyncio.sleep(LAG_SECONDS)
        if self._hub.revision < revision:
            with contextlib.suppress(Unavailable):
                await self._write_fence()

    # Encoding

    def _encode(self, key: str) -> bytes:
        return (self._prefix + key[len(self._root) :]).encode("utf-8", "surrogateescape")

    def _key_value(self, kv: Any) -> KeyValue:
        return KeyValue(self._decode(kv.key), kv.value, kv.create_revision, kv.mod_revision)

    def _decode(self, key: bytes) -> str:
        return self._root + key.decode("utf-8", "surrogateescape")[len(self._prefix) :]

    def _event(self, change: Any) -> Event:
        kv = change.kv
        return Event(
            kv.mod_revision,
            self._decode(kv.key),
            None if change.type == pb.DELETE else self._key_value(kv),
            self._key_value(change.prev_kv) if change.HasField("prev_kv") else None,
        )


def _range(prefix: str) -> tuple[bytes, bytes]:
    """First key and range end for `prefix` in etcd's form. A zero byte means all keys."""
    first = prefix.encode("utf-8", "surrogateescape")
    stem = first.rstrip(b"\xff")
    end = stem[:-1] + bytes([stem[-1] + 1]) if stem else b"\0"
    return first or b"\0", end
