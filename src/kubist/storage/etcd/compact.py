"""Compaction of etcd by one of the servers that share it: the first server to increment a common key.

The key and its meaning are kube-apiserver's, so both can run side by side.
"""

from __future__ import annotations

import asyncio
import contextlib

from kubist.storage.etcd import messages as pb
from kubist.storage.etcd.client import EtcdClient
from kubist.storage.store import Compacted, StoreError

CLOCK = b"compact_rev_key"


async def compact_forever(client: EtcdClient, interval: float) -> None:
    """Compacts every `interval` seconds to the revision of one interval ago."""
    compactor = Compactor(client)
    while True:
        await asyncio.sleep(interval)
        with contextlib.suppress(StoreError):
            await compactor.turn()


class Compactor:
    """One of the servers that compact in turns.

    The version of the clock key is the logical time. A server that knows the current version increments it and
    compacts. The other servers learn the new version, and one of them compacts if the first server stops.
    """

    def __init__(self, client: EtcdClient) -> None:
        self._client = client
        self._version = 0
        self._revision = 0

    async def turn(self) -> bool:
        """Compacts to the revision of the previous turn unless another server has. Returns whether it did."""
        moved, self._version, now = await _move_clock(self._client, self._version, self._revision)
        compacts = moved and self._revision > 0
        if compacts:
            await compact(self._client, self._revision)
        self._revision = now
        return compacts


async def compact(client: EtcdClient, revision: int) -> None:
    try:
        await client.call("Compact", pb.CompactionRequest(revision=revision))
    except Compacted:
        return


async def _move_clock(client: EtcdClient, version: int, revision: int) -> tuple[bool, int, int]:
    """Increments the clock key if it is at `version`. Returns whether it was, its version now, and the store's
    revision."""
    request = pb.TxnRequest(
        compare=[pb.Compare(target=pb.TARGET_VERSION, key=CLOCK, version=version)],
        success=[pb.RequestOp(request_put=pb.PutRequest(key=CLOCK, value=str(revision).encode()))],
        failure=[pb.RequestOp(request_range=pb.RangeRequest(key=CLOCK))],
    )
    response = await client.call("Txn", request, repeatable=False)
    if response.succeeded:
        return True, version + 1, response.header.revision
    kvs = response.responses[0].response_range.kvs
    return False, kvs[0].version if kvs else 0, response.header.revision
