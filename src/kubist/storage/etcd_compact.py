"""Compaction of etcd by one of all servers that share it: whoever first moves the clock in a common key.

The key and its meaning are kube-apiserver's, so that both can run side by side.
"""

from __future__ import annotations

import asyncio

from . import etcd_messages as pb
from .etcd_client import EtcdClient
from .store import Compacted, StoreError

CLOCK = b"compact_rev_key"


async def compact_forever(client: EtcdClient, interval: float) -> None:
    """Every `interval` forget what was history an interval ago.

    The version of the clock key is the time. It moves only for a server that knew it; that server compacts,
    the others learn the new time and have their turn if it fails to come back.
    """
    version = revision = 0
    while True:
        await asyncio.sleep(interval)
        try:
            moved, version, now = await _move_clock(client, version, revision)
            if moved and revision:
                await compact(client, revision)
        except StoreError:
            continue
        revision = now


async def compact(client: EtcdClient, revision: int) -> None:
    try:
        await client.call("Compact", pb.CompactionRequest(revision=revision))
    except Compacted:
        return


async def _move_clock(client: EtcdClient, version: int, revision: int) -> tuple[bool, int, int]:
    """Whether the clock was at `version` and moved; where it is; the revision of the store."""
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
