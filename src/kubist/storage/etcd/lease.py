"""etcd leases for expiring keys: keys with the same ttl written within a short time share a lease.

A lease costs etcd more than a key. This module may import the client only.
"""

from __future__ import annotations

import asyncio
import time

from kubist.storage.etcd import messages as pb
from kubist.storage.etcd.client import EtcdClient

SHARE = 20
"""A key may live longer than its ttl by 1/SHARE of the ttl, at most SHARE_SECONDS."""

SHARE_SECONDS = 60


class Leases:
    def __init__(self, client: EtcdClient) -> None:
        self._client = client
        self._granted: dict[int, tuple[float, asyncio.Task[int]]] = {}

    async def get(self, ttl: int) -> int:
        """ID of a lease that ends `ttl` seconds from now or slightly later."""
        shared = min(ttl // SHARE, SHARE_SECONDS)
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
