"""Addresses of simulated pods, from the pod networks of their nodes."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from kubist.api.objectclient import ObjectClient
from kubist.cluster.simulation.nodes import POD_NETWORK
from kubist.cluster.simulation.podstatus import NODE_ADDRESS
from kubist.model.meta.object import Object

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Addresses:
    """Gives every pod an address that no other pod has."""

    def __init__(self, client: ObjectClient) -> None:
        self._client = client
        self._taken: dict[tuple[str, str], str] = {}
        """First addresses that were given to pods."""
        self._free: dict[str, Iterator[str]] = {}
        """Addresses of each network that no pod had when the present round over it began."""

    def of(self, key: tuple[str, str], node: Object) -> list[str]:
        """Addresses of a pod: one in each network of its node."""
        spec = node["spec"]
        networks = spec.get("podCIDRs") or ([spec["podCIDR"]] if spec.get("podCIDR") else [str(POD_NETWORK)])
        if key not in self._taken:
            self._taken[key] = self._next(networks[0])
        first = self._taken[key]
        return [first, *(_counterpart(first, networks[0], other) for other in networks[1:])]

    def release(self, key: tuple[str, str]) -> None:
        self._taken.pop(key, None)

    def _next(self, network: str) -> str:
        for _ in range(2):
            address = next(self._free.get(network, iter(())), None)
            if address is not None:
                return address
            entries = self._client.collection("pods").entries.values()
            taken = {entry.fields.get("status.podIP") for entry in entries} | set(self._taken.values())
            hosts = ipaddress.ip_network(network, strict=False).hosts()
            self._free[network] = (text for host in hosts if (text := str(host)) not in taken)
        raise LookupError(f"all addresses of {network} are taken")


def _counterpart(address: str, network: str, other: str) -> str:
    """Address at the same place in another network. Pods of a dual-stack cluster have one in each family."""
    offset = int(ipaddress.ip_address(address)) - int(ipaddress.ip_network(network, strict=False)[0])
    return str(ipaddress.ip_network(other, strict=False)[offset])


def host_addresses(node: Object) -> list[str]:
    """Addresses of a node, at most one of each family."""
    listed = (node.get("status") or {}).get("addresses") or ()
    internal = [entry["address"] for entry in listed if entry.get("type") == "InternalIP"]
    return internal[:2] or [NODE_ADDRESS]
