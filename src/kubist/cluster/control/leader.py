"""Leader election by a Lease: one of several servers on a store runs the controllers, and another takes over.

A Lease is stale when a candidate has not seen it change for its duration, measured by the candidate's own
clock.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import uuid

from kubist.api.object_client import ObjectClient
from kubist.model.meta.object import Object
from kubist.model.meta.status import APIError
from kubist.model.meta.times import now_micro
from kubist.storage.store import StoreError

log = logging.getLogger("kubist.control")

NAMESPACE, NAME, GROUP = "kube-system", "kubist-control", "coordination.k8s.io"
DURATION = 15.0
RENEWAL = 5.0


class Leader:
    """A candidate."""

    def __init__(self, client: ObjectClient, *, duration: float = DURATION, renewal: float = RENEWAL) -> None:
        self.client = client
        self.duration = duration
        self.renewal = renewal
        self.identity = f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4()}"
        self._seen: tuple[str, float] = ("", 0.0)

    async def acquire(self) -> None:
        """Returns when this candidate is the leader."""
        leads = await self._try()
        while not leads:
            await asyncio.sleep(self.renewal / 2)
            leads = await self._try()
        log.info("%s is the leader", self.identity)

    async def hold(self) -> None:
        """Renews the lease. Returns when leadership is lost."""
        loop = asyncio.get_running_loop()
        renewed = loop.time()
        while loop.time() - renewed < self.duration - self.renewal:
            await asyncio.sleep(self.renewal)
            lease = self._lease()
            if lease is not None and lease["spec"].get("holderIdentity") != self.identity:
                break
            if await self._try():
                renewed = loop.time()
        log.warning("%s is no longer the leader", self.identity)

    async def release(self) -> None:
        """Gives up the lease, so that another candidate can lead at once."""

        def edit(lease: Object) -> Object | None:
            if lease["spec"].get("holderIdentity") != self.identity:
                return None
            lease["spec"] |= {"holderIdentity": "", "leaseDurationSeconds": 1}
            return lease

        try:
            await self.client.update("leases", NAME, NAMESPACE, edit, group=GROUP)
        except (APIError, StoreError) as error:
            log.info("cannot release the lease: %s", error)

    def _lease(self) -> Object | None:
        return self.client.get("leases", NAME, NAMESPACE, group=GROUP)

    async def _try(self) -> bool:
        """Takes or renews the lease. Returns whether this candidate holds it."""
        now = now_micro()
        seconds = max(int(self.duration), 1)
        ours = {"holderIdentity": self.identity, "leaseDurationSeconds": seconds, "renewTime": now}
        taken = False

        def edit(lease: Object) -> Object | None:
            nonlocal taken
            spec, taken = lease["spec"], False
            holder = spec.get("holderIdentity", "")
            if holder not in ("", self.identity) and not self._stale(lease):
                return None
            if holder != self.identity:
                ours["acquireTime"] = now
                ours["leaseTransitions"] = spec.get("leaseTransitions", 0) + 1
            spec.update(ours)
            taken = True
            return lease

        try:
            if self._lease() is None:
                new = {
                    "metadata": {"name": NAME},
                    "spec": {**ours, "acquireTime": now, "leaseTransitions": 0},
                }
                await self.client.create("leases", new, NAMESPACE, group=GROUP)
                return True
            await self.client.update("leases", NAME, NAMESPACE, edit, group=GROUP)
        except (APIError, StoreError) as error:
            log.info("cannot acquire the lease: %s", error)
            return False
        return taken

    def _stale(self, lease: Object) -> bool:
        version, since = self._seen
        now = asyncio.get_running_loop().time()
        if lease["metadata"]["resourceVersion"] != version:
            self._seen = (lease["metadata"]["resourceVersion"], now)
            return False
        return now - since > float(lease["spec"].get("leaseDurationSeconds", self.duration))
