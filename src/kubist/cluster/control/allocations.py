"""Repairs the allocations of cluster IPs and node ports: exactly those in use are recorded.

A server that crashes between the allocation and the write of the service leaves an unused allocation. Other
programs may write services without recording allocations. Part of the API server itself.
"""

from __future__ import annotations

import contextlib
import logging

from kubist.api.kinds.core import service_addresses, service_ports
from kubist.api.resources.context import Objects
from kubist.base import clock
from kubist.model.meta.object import Object
from kubist.model.meta.status import APIError
from kubist.storage.store import Conflict, Store

log = logging.getLogger("kubist")
INTERVAL = 180.0


async def repair_allocations(objects: Objects, store: Store) -> None:
    """Repairs every INTERVAL seconds, as long as the server runs."""
    allocations = Allocations(objects, store)
    while True:
        try:
            await allocations.repair()
        except Exception:
            log.exception("cannot repair the allocations of cluster IPs and node ports")
        await clock.sleep(INTERVAL)


class Allocations:
    """Releases an address or port only if two passes in a row find it unused, because one pass may see a half-finished
    write."""

    def __init__(self, objects: Objects, store: Store) -> None:
        self._objects = objects
        self._store = store
        self._unused_ports: set[int] = set()
        self._unused_addresses: set[str] = set()

    async def repair(self) -> None:
        """Runs one pass."""
        await self._ports()
        await self._addresses(list(self._objects.list("services", None)))
        await self._remove_claims()

    async def _ports(self) -> None:
        ports = self._objects.node_ports
        replaced = False
        while not replaced:
            record = await ports.read()
            # A port is released after its service is deleted, so the services must not be older than the
            # record.
            await self._objects.catch_up()
            used = service_ports.in_use(self._objects)
            unused = ports.allocated(record) - used
            bits = ports.bitmap(used | (unused - self._unused_ports))
            same = record.range == ports.range and record.bits == bits
            replaced = same or await ports.replace(record, bits)
        self._unused_ports = unused - self._unused_ports

    async def _remove_claims(self) -> None:
        """Deletes the keys with which earlier versions of this server claimed single ports."""
        for claim in (await self._store.scan(f"{service_ports.KEY}/")).items:
            with contextlib.suppress(Conflict):
                await self._store.delete(claim.key, claim.mod_revision)

    async def _addresses(self, services: list[Object]) -> None:
        group = service_addresses.GROUP
        used = {ip: service for service in services for ip in service_addresses.addresses_of(service)}
        recorded = {
            address["metadata"]["name"]
            for address in self._objects.list("ipaddresses", group=group)
            if (address["metadata"].get("labels") or {}).get(service_addresses.MANAGED_BY_LABEL)
            == service_addresses.MANAGER
        }
        for ip in used.keys() - recorded:
            if self._objects.get("ipaddresses", ip, group=group) is None:
                await self._record(ip, used[ip])
        unused = recorded - used.keys()
        for ip in unused & self._unused_addresses:
            await service_addresses.release_ip(self._objects, ip)
        self._unused_addresses = unused - self._unused_addresses

    async def _record(self, ip: str, service: Object) -> None:
        try:
            await self._objects.create(
                "ipaddresses", service_addresses.ip_address(ip, service), group=service_addresses.GROUP
            )
        except APIError as error:
            if error.reason != "AlreadyExists":
                raise
