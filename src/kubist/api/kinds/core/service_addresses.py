"""Cluster IP allocation. Each cluster IP is an IPAddress object; its creation decides between competing servers.

Addresses come from the ServiceCIDRs. A requested address may be anywhere in them. Other addresses come from the upper
part first.
"""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from kubist.api.kinds.core.service_families import family_of, unchanged_prefer_dual_stack
from kubist.api.kinds.shared.ip import Address, Network, parse_cidr, parse_ip
from kubist.base.jsontext.quoting import quoted
from kubist.model.meta import fields
from kubist.model.meta.status import APIError, internal_error, invalid

if TYPE_CHECKING:
    from kubist.api.config import Config
    from kubist.api.resources.allocations import Allocations
    from kubist.api.resources.context import Context, Objects
    from kubist.model.meta.object import Object

GROUP = "networking.k8s.io"
FAMILY_LABEL = "ipaddress.kubernetes.io/ip-family"
MANAGED_BY_LABEL = "ipaddress.kubernetes.io/managed-by"
MANAGER = "ipallocator.k8s.io"


def configured_networks(config: Config) -> list[Network]:
    cidrs = config.service_cluster_ip_range.split(",")
    return [network for cidr in cidrs if (network := parse_cidr(cidr.strip())) is not None]


def families(config: Config) -> list[str]:
    """IP families of the cluster, the default family first."""
    return [f"IPv{network.version}" for network in configured_networks(config)]


def addresses_of(service: Object) -> set[str]:
    """Cluster IPs that a service holds, in canonical form."""
    spec = service["spec"]
    if spec.get("type") == "ExternalName":
        return set()
    return {str(parse_ip(ip)) for ip in spec.get("clusterIPs") or () if ip and ip != "None"}


def ip_address(ip: str, service: Object) -> Object:
    """IPAddress object that records the service as the holder of `ip`."""
    metadata = service["metadata"]
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "IPAddress",
        "metadata": {"name": ip, "labels": {FAMILY_LABEL: family_of(ip), MANAGED_BY_LABEL: MANAGER}},
        "spec": {
            "parentRef": {
                "resource": "services",
                "namespace": metadata["namespace"],
                "name": metadata.get("name", ""),
            }
        },
    }


async def allocate(ctx: Context, new: Object, old: Object | None, allocations: Allocations) -> None:
    """Allocates the cluster IPs that `new` needs and `old` does not have. Sets clusterIP and clusterIPs."""
    spec = new["spec"]
    first = _first_to_allocate(spec, old["spec"] if old else None)
    if first is None:
        return
    families = spec.get("ipFamilies") or []
    ips = list(spec.get("clusterIPs") or ())
    ips += [""] * (len(families) - len(ips))
    for i in range(first, len(families)):
        if ips[i]:
            await _take(ctx, new, ips[i])
        else:
            ips[i] = await _take_any(ctx, new, families[i])
        if not ctx.dry_run:
            allocations.release_with(partial(release_ip, ctx.objects, ips[i]))
    if ips:
        spec["clusterIPs"] = ips
        spec["clusterIP"] = ips[0]


def _first_to_allocate(spec: dict[str, Any], before: dict[str, Any] | None) -> int | None:
    """Index of the first item of clusterIPs to allocate: 0 for all, 1 for only the second family, None for none."""
    ips = spec.get("clusterIPs") or []
    if spec.get("type") == "ExternalName" or unchanged_prefer_dual_stack(spec, before):
        return None
    if before is None or before.get("type") == "ExternalName":
        return None if ips[:1] == ["None"] else 0
    if (before.get("clusterIPs") or [])[:1] == ["None"]:
        return None
    upgraded = len(before.get("ipFamilies") or ()) == 1 and len(spec.get("ipFamilies") or ()) == 2
    return 1 if upgraded else None


def _networks(ctx: Context, version: int) -> list[Network]:
    """Networks to allocate from: the ready ServiceCIDRs, or the configured range if no ServiceCIDR exists."""
    networks: list[Network] = []
    some = False
    for cidr in ctx.objects.list("servicecidrs", group=GROUP):
        some = True
        if not is_ready(cidr):
            continue
        for text in cidr["spec"].get("cidrs") or ():
            network = parse_cidr(text)
            if network is not None and network not in networks:
                networks.append(network)
    return [n for n in (networks if some else configured_networks(ctx.config)) if n.version == version]


def is_ready(service_cidr: Object) -> bool:
    """Whether the ServiceCIDR is not terminating and its Ready condition, if present, is True."""
    if "deletionTimestamp" in service_cidr["metadata"]:
        return False
    for condition in (service_cidr.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "Ready":
            return bool(condition.get("status") == "True")
    return True


def _bounds(network: Network) -> tuple[int, int]:
    """First and last usable address: without the network address, and in IPv4 without the broadcast address."""
    first = int(network.network_address) + 1
    last = int(network.broadcast_address) - (1 if network.version == 4 else 0)
    return first, last


def contains(network: Network, address: Address) -> bool:
    first, last = _bounds(network)
    return network.version == address.version and first <= int(address) <= last


def _refused(service: Object, why: str) -> APIError:
    errors = [fields.invalid("spec.clusterIPs", service["spec"].get("clusterIPs") or [], why)]
    return invalid("", "Service", service["metadata"].get("name", ""), errors)


async def _take(ctx: Context, service: Object, ip: str) -> None:
    address = parse_ip(ip)
    if address is None:
        raise internal_error(f"failed to parse service IP {quoted(ip)}")
    networks = _networks(ctx, address.version)
    if not any(contains(network, address) for network in networks):
        why = "the provided network does not match the current range"
        if ctx.dry_run and networks:
            valid = f"The range of valid IPs is {networks[0]}"
            why = f"the provided IP ({address}) is not in the valid range. {valid}"
    elif ctx.dry_run or await _create(ctx, service, str(address)):
        return
    else:
        why = "provided IP is already allocated"
    raise _refused(service, f"failed to allocate IP {ip}: {why}")


async def _take_any(ctx: Context, service: Object, family: str) -> str:
    networks = _networks(ctx, 6 if family == "IPv6" else 4)
    if ctx.dry_run and networks:
        return str(networks[0].network_address)
    for network in networks:
        for ip in _candidates(network):
            if ctx.objects.get("ipaddresses", ip, group=GROUP) is None and await _create(ctx, service, ip):
                return ip
    name = quoted(service["metadata"].get("name", ""))
    raise internal_error(f"failed to allocate a serviceIP for Service {name}: range is full")


def _candidates(network: Network) -> Iterator[str]:
    """Usable addresses: first the upper part, then the part reserved for requested addresses, each from a random
    start."""
    first, last = _bounds(network)
    reserved = _reserved(network.num_addresses)
    make = ipaddress.IPv4Address if network.version == 4 else ipaddress.IPv6Address
    for low, high in ((first + reserved, last), (first, first + reserved - 1)):
        size = high - low + 1
        if size > 0:
            start = random.randrange(size)
            for i in range(size):
                yield str(make(low + (start + i) % size))


def _reserved(size: int) -> int:
    """Number of low addresses that are reserved for services that request one."""
    return 0 if size <= 16 else min(max(16, size // 16), 256)


async def _create(ctx: Context, service: Object, ip: str) -> bool:
    try:
        await ctx.objects.create("ipaddresses", ip_address(ip, service), group=GROUP)
    except APIError as error:
        if error.code == 409:
            return False
        if error.code == 422:  # for example, the service has no name
            raise _refused(service, f"failed to allocate IP: {error}") from None
        raise
    return True


async def release(ctx: Context, ips: Iterable[str]) -> None:
    for ip in ips:
        await release_ip(ctx.objects, ip)


async def release_ip(objects: Objects, ip: str) -> None:
    try:
        await objects.delete("ipaddresses", str(parse_ip(ip)), group=GROUP)
    except APIError as error:
        if error.code != 404:
            raise
