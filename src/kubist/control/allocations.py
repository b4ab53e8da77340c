"""Allocations in step with services: every cluster IP and node port in use is recorded, and none that is not.

Servers that die between taking an address and storing its service leave it taken; other programs may have
written services without recording anything. Part of the API server itself.
"""

from __future__ import annotations

import asyncio
import logging

from kubist.kinds.core import service_addresses, service_ports
from kubist.meta.status import APIError
from kubist.resources.context import Object, Objects

log = logging.getLogger("kubist")
INTERVAL = 180.0


async def repair_allocations(objects: Objects) -> None:
    """Repair now and then, for as long as the server runs."""
    allocations = Allocations(objects)
    while True:
        try:
            await allocations.repair()
        except Exception:
            log.exception("services and their allocations could not be compared")
        await asyncio.sleep(INTERVAL)


class Allocations:
    """What is unused is released only if it was so at two passes: one may have seen a write half done."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._unused_ports: set[int] = set()
        self._unused_addresses: set[str] = set()

    async def repair(self) -> None:
        """One pass; to be run at start and every few minutes."""
        services = list(self._objects.list("services", None))
        await self._ports(services)
        await self._addresses(services)

    async def _ports(self, services: list[Object]) -> None:
        used = {port: service for service in services for port in service_ports.held(service)}
        claims = await self._objects.claims(service_ports.CLAIMS)
        claimed = {int(key.removeprefix(service_ports.CLAIMS)) for key in claims}
        for port in used.keys() - claimed:
            metadata = used[port]["metadata"]
            owner = f"{metadata['namespace']}/{metadata['name']}"
            await self._objects.claim(service_ports.claim_key(port), owner)
        unused = claimed - used.keys()
        for port in unused & self._unused_ports:
            await self._objects.unclaim(service_ports.claim_key(port))
        self._unused_ports = unused - self._unused_ports

    async def _addresses(self, services: list[Object]) -> None:
        group = service_addresses.GROUP
        used = {ip: service for service in services for ip in service_addresses.held(service)}
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
