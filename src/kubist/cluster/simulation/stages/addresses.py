"""Addresses for templates: those of nodes, and unused ones for pods."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator
from typing import Any

from kubist.api.object_client import ObjectClient
from kubist.cluster.simulation.stages.limits import StageError
from kubist.model.meta.object import Object

DEFAULT_NETWORK = "10.244.0.0/16"
"""Network of pods on a node without podCIDR."""
DEFAULT_NODE_ADDRESS = "192.0.2.1"
"""Address of a node that reports none."""
NODE_PORT = 0
"""Port of the kubelet. Nothing listens on a simulated node."""


class Addresses:
    """Template functions about addresses. Pods get addresses from the end of their node's network, because the
    simulated kubelet gives those from its beginning."""

    def __init__(self, client: ObjectClient) -> None:
        self._client = client
        self._free: dict[str, Iterator[str]] = {}
        """Unused addresses by network."""
        self._addresses: dict[tuple[str, str], list[str]] = {}
        """Addresses of pods by namespace and name. The status of the pod may not have them yet."""

    def functions(self, obj: Object) -> dict[str, Callable[..., Any]]:
        """Functions for the templates of a pod or node."""

        def of_pod(node: str, host_network: Any, *_identity: Any) -> list[str]:
            if not isinstance(node, str):
                raise StageError("the name of the node must be a string")
            return self.of_node(node) if host_network else self._of_pod(obj, node)

        return {
            "NodeIP": lambda: DEFAULT_NODE_ADDRESS,
            "NodeName": lambda: obj["metadata"]["name"],
            "NodePort": lambda: NODE_PORT,
            "NodeIPWith": lambda node: self.of_node(node)[0],
            "NodeIPsWith": lambda node: self.of_node(node),
            "PodIP": lambda: self._of_pod(obj, "")[0],
            "PodIPWith": lambda node, host_network, *rest: of_pod(node, host_network, *rest)[0],
            "PodIPsWith": of_pod,
        }

    def of_node(self, name: Any) -> list[str]:
        """Addresses of a node: one for each IP family, internal ones first."""
        node = self._client.get("nodes", name) if isinstance(name, str) and name else None
        addresses = ((node or {}).get("status") or {}).get("addresses") or ()
        by_family: dict[int, str] = {}
        for kind in ("InternalIP", "ExternalIP"):
            for address in (one["address"] for one in addresses if one.get("type") == kind):
                try:
                    by_family.setdefault(ipaddress.ip_address(address).version, address)
                except ValueError:
                    continue
        return list(by_family.values()) or [DEFAULT_NODE_ADDRESS]

    def _of_pod(self, pod: Object, node_name: str) -> list[str]:
        """Addresses of a pod: those that it has, else unused ones of its node's networks."""
        addresses = [one["ip"] for one in (pod.get("status") or {}).get("podIPs") or () if one.get("ip")]
        if addresses:
            return addresses
        metadata = pod["metadata"]
        key = (metadata.get("namespace", ""), metadata["name"])
        if key not in self._addresses:
            node = self._client.get("nodes", node_name) if node_name else None
            spec = (node or {}).get("spec") or {}
            networks = spec.get("podCIDRs") or (
                [spec["podCIDR"]] if spec.get("podCIDR") else [DEFAULT_NETWORK]
            )
            self._addresses[key] = [self._unused(network) for network in networks]
        return self._addresses[key]

    def _unused(self, network: str) -> str:
        """The next address that was free when the present round through the network began."""
        for _ in range(2):
            address = next(self._free.get(network, iter(())), None)
            if address is not None:
                return address
            self._free[network] = self._round(network)
        raise StageError(f"all addresses of the pod network {network} are taken")

    def _round(self, network: str) -> Iterator[str]:
        used = {
            entry.fields.get("status.podIP") for entry in self._client.collection("pods").entries.values()
        }
        used.update(address for addresses in self._addresses.values() for address in addresses)
        parsed = ipaddress.ip_network(network, strict=False)
        first, last = int(parsed.network_address) + 1, int(parsed.broadcast_address) - 1
        kind = type(parsed.network_address)
        return (text for number in range(last, first - 1, -1) if (text := str(kind(number))) not in used)

    def release(self, namespace: str, name: str) -> None:
        """Forgets a deleted pod."""
        self._addresses.pop((namespace, name), None)
