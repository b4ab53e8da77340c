"""Endpoints of the Service kubernetes: the addresses of all API servers that run on one etcd.

Every server holds a lease, the key `/registry/masterleases/ADDRESS`, which expires unless it is renewed. Every server
brings the endpoints in line with the leases. Keys, values and times are those of kube-apiserver
(`--endpoint-reconciler-type=lease`), so that both can serve one cluster. Part of the API server itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

import orjson

from kubist.api.bootstrap.objects import advertise_address, own_endpoints
from kubist.base import eager_task
from kubist.model.codec import protobuf
from kubist.model.meta import times
from kubist.model.meta.object import Object
from kubist.model.meta.objectmeta import raise_generation
from kubist.model.meta.status import APIError
from kubist.model.schema.catalog import schema_for
from kubist.storage.store import Conflict, Store, StoreError

if TYPE_CHECKING:
    from kubist.api.config import Config
    from kubist.api.object_store.registry import Registry

log = logging.getLogger("kubist")
LEASES = "/registry/masterleases/"
LEASE_SECONDS = 15
INTERVAL = 10.0
WITHDRAW_SECONDS = 2.0
_DISCOVERY = "discovery.k8s.io"


def leases_address(config: Config) -> bool:
    """Whether a server with this configuration shares the endpoints with others. A server that listens only on a
    loopback address does not, unless --advertise-address names a reachable address."""
    if not config.etcd_servers or config.endpoint_reconciler_type != "lease":
        return False
    bound = config.bind_address
    if not config.advertise_address and bound and ipaddress.ip_address(bound).is_loopback:
        return False
    return not ipaddress.ip_address(advertise_address(config)).is_loopback


async def leased_addresses(store: Store) -> set[str]:
    """Addresses of the servers with a lease on a shared etcd."""
    ips = set()
    for lease in (await store.scan(LEASES)).items:
        subsets = _decoded(lease.value).get("subsets") or [{}]
        addresses = subsets[0].get("addresses") or [{}]
        if address := addresses[0].get("ip"):
            ips.add(address)
    return ips


class KubernetesService:
    """Keeps the addresses of this server and of all other running servers in the endpoints."""

    def __init__(self, registry: Registry, config: Config, port: int) -> None:
        self._registry = registry
        self._store = registry.store
        self._address = advertise_address(config)
        self._port = port
        self._key = LEASES + self._address
        self._revision = 0
        """Revision of this server's last renewal."""
        self._shared = False
        """Whether another server renews the same lease: it has the same address, and maybe another port."""

    async def run(self) -> None:
        """Renews the lease and reconciles every INTERVAL seconds, as long as the server runs."""
        while True:
            try:
                await self._renew()
                await self._reconcile()
            except (APIError, StoreError) as error:
                log.warning("cannot update the endpoints of the Service kubernetes: %s", error)
            except Exception:  # such as a malformed lease of another server
                log.exception("cannot update the endpoints of the Service kubernetes")
            await asyncio.sleep(INTERVAL)

    async def withdraw(self) -> None:
        """Removes this server from the endpoints, unless another server with the same address renewed the lease."""
        try:
            async with eager_task.timeout(WITHDRAW_SECONDS):
                with contextlib.suppress(Conflict):
                    await self._store.delete(self._key, self._revision)
                await self._reconcile()
        except (APIError, StoreError, TimeoutError) as error:
            log.warning("this server's address stays in the endpoints until its lease ends: %s", error)

    async def _renew(self) -> None:
        self._shared = False
        subsets = [{"addresses": [{"ip": self._address}]}]
        value = orjson.dumps({"kind": "Endpoints", "apiVersion": "v1", "metadata": {}, "subsets": subsets})
        while True:
            try:
                if self._revision:
                    renewal = self._store.update(self._key, value, self._revision, ttl=LEASE_SECONDS)
                else:
                    renewal = self._store.create(self._key, value, ttl=LEASE_SECONDS)
                self._revision = await renewal
                return
            except Conflict as lost:
                self._shared = lost.current is not None
                self._revision = lost.current.mod_revision if lost.current is not None else 0

    async def _reconcile(self) -> None:
        addresses = await leased_addresses(self._store)
        ordered = sorted(addresses, key=lambda address: ipaddress.ip_address(address).packed)
        alone = addresses == {self._address} and not self._shared
        endpoints, endpoint_slice = own_endpoints(ordered, self._port, times.now())
        revise = _replace_endpoints if alone else _revise_endpoints
        stored = await self._create_or_update("endpoints", "", endpoints, revise)
        await self._create_or_update(
            "endpointslices", _DISCOVERY, _slice_of(stored, endpoint_slice), _revise_slice
        )

    async def _create_or_update(
        self, resource: str, group: str, new: Object, revise: Callable[[Object, Object], Object | None]
    ) -> Object:
        """Creates or updates an object. Returns its new state."""
        registry = self._registry
        name, namespace = new["metadata"]["name"], new["metadata"]["namespace"]
        await registry.cache.catch_up()
        if registry.get(resource, name, namespace, group=group) is None:
            stored = registry.resources.stored(group, resource)
            assert stored is not None
            key = stored.key(namespace, name)
            with contextlib.suppress(Conflict):  # another server was faster
                await registry.store.create(key, registry.kind(stored).encode(new))
                return new
        return await registry.mutate(
            resource, name, namespace, lambda current: revise(current, new), group=group
        )


def _decoded(value: bytes) -> Object:
    decoded: Object
    if value.startswith(protobuf.MAGIC):
        decoded = protobuf.decode(schema_for("", "v1", "Endpoints"), protobuf.unwrap(value).raw)
    else:
        decoded = orjson.loads(value)
    return decoded


def _replace_endpoints(current: Object, new: Object) -> Object | None:
    if current.get("subsets") == new["subsets"]:
        return None
    current["subsets"] = new["subsets"]
    return current


def _revise_endpoints(current: Object, new: Object) -> Object | None:
    """Object with the new addresses; None if they are the same. Ports stay, because servers may listen on different
    ones."""
    subsets = current.get("subsets") or []
    if not new["subsets"]:
        return current if current.pop("subsets", None) else None
    if len(subsets) != 1:
        current["subsets"] = new["subsets"]
        return current
    addresses = new["subsets"][0]["addresses"]
    current_addresses = subsets[0].get("addresses") or []
    if sorted(each.get("ip", "") for each in current_addresses) == sorted(each["ip"] for each in addresses):
        return None
    subsets[0]["addresses"] = addresses
    return current


def _slice_of(endpoints: Object, new_slice: Object) -> Object:
    """The EndpointSlice for Endpoints: the same addresses in the same order, of one family, and the same ports."""
    subset = (endpoints.get("subsets") or [{}])[0]
    version = 6 if new_slice["addressType"] == "IPv6" else 4
    listed = [each["ip"] for each in subset.get("addresses") or ()]
    listed = [ip for ip in listed if ipaddress.ip_address(ip).version == version]
    new_slice["endpoints"] = [{"addresses": [ip], "conditions": {"ready": True}} for ip in listed] or None
    order = ("name", "protocol", "port")
    ports = [{name: port[name] for name in order if name in port} for port in subset.get("ports") or ()]
    new_slice["ports"] = ports or None
    return new_slice


def _revise_slice(current: Object, new: Object) -> Object | None:
    if all((current.get(name) or None) == new[name] for name in ("endpoints", "ports")):
        return None
    current.update(endpoints=new["endpoints"], ports=new["ports"])
    raise_generation(current, current)
    return current
