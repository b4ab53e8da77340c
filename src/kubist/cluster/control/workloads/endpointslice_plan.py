"""Endpoints of Services: addresses, conditions and ports of pods, and their distribution over EndpointSlices."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import orjson

from kubist.cluster.control.values import pod_ready
from kubist.model.meta.object import Object

SLICE = 100
"""Maximum number of endpoints in one slice."""
CAPACITY = 1000
"""Maximum number of addresses in one Endpoints object, and of mirrored addresses of one subset."""
ZONE = "topology.kubernetes.io/zone"
SAME_ZONE = ("PreferClose", "PreferSameZone", "PreferSameNode")


@dataclass(slots=True)
class Group:
    """Endpoints with the same address type and ports."""

    address_type: str
    ports: list[Object]
    endpoints: list[Object] = field(default_factory=list)

    @property
    def key(self) -> tuple[str, bytes]:
        return self.address_type, ports_key(self.ports)


def ports_key(ports: Iterable[Object]) -> bytes:
    """Key that is equal for the same ports in any order."""
    return b",".join(sorted(orjson.dumps(port, option=orjson.OPT_SORT_KEYS) for port in ports))


def is_listed(pod: Object, *, terminating: bool) -> bool:
    """Whether a pod has an address and has not finished. `terminating`: also a pod that is being deleted."""
    status = pod["status"]
    if status.get("phase") in ("Succeeded", "Failed") or not status.get("podIPs"):
        return False
    return terminating or "deletionTimestamp" not in pod["metadata"]


def address_types(service: Object) -> list[str]:
    """Address types of the slices of a Service, from its IP families."""
    return list(service["spec"].get("ipFamilies") or ["IPv4"])


def address_of(pod: Object, address_type: str) -> str:
    """Address of a pod of one type; empty if it has none."""
    ips = [entry["ip"] for entry in pod["status"].get("podIPs") or ()]
    return next((ip for ip in ips if (":" in ip) == (address_type == "IPv6")), "")


def ports_of(service: Object, pod: Object) -> list[Object]:
    """Ports of the Service on a pod. Named target ports are resolved in its containers."""
    ports = []
    for port in service["spec"].get("ports") or ():
        protocol = port.get("protocol", "TCP")
        target = port.get("targetPort", port["port"])
        number = _find_port(pod, target, protocol) if isinstance(target, str) else target
        if number is None:
            continue
        endpoint_port = {"name": port.get("name", ""), "port": number, "protocol": protocol}
        if port.get("appProtocol"):
            endpoint_port["appProtocol"] = port["appProtocol"]
        ports.append(endpoint_port)
    return ports


def _find_port(pod: Object, name: str, protocol: str) -> int | None:
    sidecars = (c for c in pod["spec"].get("initContainers") or () if c.get("restartPolicy") == "Always")
    for container in (*pod["spec"]["containers"], *sidecars):
        for port in container.get("ports") or ():
            if port.get("name") == name and port.get("protocol", "TCP") == protocol:
                number: int = port["containerPort"]
                return number
    return None


def endpoint_of(service: Object, pod: Object, node: Object | None, address: str) -> Object:
    """Endpoint of a slice, with conditions, place and hints."""
    spec = pod["spec"]
    serving, terminating = pod_ready(pod), "deletionTimestamp" in pod["metadata"]
    ready = bool(service["spec"].get("publishNotReadyAddresses")) or (serving and not terminating)
    endpoint: Object = {
        "addresses": [address],
        "conditions": {"ready": ready, "serving": serving, "terminating": terminating},
        "targetRef": target_reference(pod),
    }
    if spec.get("nodeName"):
        endpoint["nodeName"] = spec["nodeName"]
    if zone := ((node or {"metadata": {}})["metadata"].get("labels") or {}).get(ZONE):
        endpoint["zone"] = zone
    if has_hostname(service, pod):
        endpoint["hostname"] = spec["hostname"]
    if ready and (hints := _hints(service, endpoint)):
        endpoint["hints"] = hints
    return endpoint


def _hints(service: Object, endpoint: Object) -> Object:
    """Hints by the Service's trafficDistribution."""
    distribution = service["spec"].get("trafficDistribution")
    hints: Object = {}
    if distribution in SAME_ZONE and "zone" in endpoint:
        hints["forZones"] = [{"name": endpoint["zone"]}]
    if distribution == "PreferSameNode" and "nodeName" in endpoint:
        hints["forNodes"] = [{"name": endpoint["nodeName"]}]
    return hints


def has_hostname(service: Object, pod: Object) -> bool:
    """Whether the pod has a DNS name below the Service."""
    spec = pod["spec"]
    return bool(spec.get("hostname")) and bool(spec.get("subdomain") == service["metadata"]["name"])


def target_reference(pod: Object) -> Object:
    metadata = pod["metadata"]
    return {"kind": "Pod", **{part: metadata[part] for part in ("namespace", "name", "uid")}}


def slice_groups(service: Object, pods: list[Object], nodes: dict[str, Object]) -> list[Group]:
    """Endpoints of a Service by address type and ports. Pods of unknown nodes are left out unless the Service publishes
    addresses that are not ready."""
    groups: dict[tuple[str, bytes], Group] = {}
    for pod in pods:
        node = nodes.get(pod["spec"].get("nodeName", ""))
        if not is_listed(pod, terminating=True):
            continue
        if node is None and not service["spec"].get("publishNotReadyAddresses"):
            continue
        ports = ports_of(service, pod)
        for address_type in address_types(service):
            if address := address_of(pod, address_type):
                group = Group(address_type, ports)
                group = groups.setdefault(group.key, group)
                group.endpoints.append(endpoint_of(service, pod, node, address))
    return list(groups.values())


def identity(endpoint: Object) -> tuple[object, ...]:
    """Endpoints with the same identity are versions of one endpoint."""
    target = endpoint.get("targetRef") or {}
    return (
        *endpoint["addresses"],
        endpoint.get("hostname"),
        target.get("namespace"),
        target.get("name"),
    )


def distribute(old: list[list[Object]], desired: list[Object], size: int = SLICE) -> list[list[Object]]:
    """Endpoints of every slice. Endpoints stay in their slice. New ones fill slices that change anyway, then the
    slice that they fill best, then new slices, which come last. An empty list is a slice to delete."""
    left = {identity(endpoint): endpoint for endpoint in desired}
    result: list[list[Object]] = []
    for endpoints in old:
        kept = [left.pop(key) for endpoint in endpoints if (key := identity(endpoint)) in left]
        result.append(kept)
    new = list(left.values())
    changed = [index for index, endpoints in enumerate(old) if result[index] and result[index] != endpoints]
    for index in sorted(changed, key=lambda index: -len(result[index])):
        room = size - len(result[index])
        result[index] = result[index] + new[:room]
        new = new[room:]
    while new:
        fitting = [
            index
            for index in range(len(old))
            if index not in changed and result[index] and len(result[index]) + len(new) <= size
        ]
        if fitting:
            best = max(fitting, key=lambda index: len(result[index]))
            result[best] = result[best] + new
            break
        result.append(new[:size])
        new = new[size:]
    return result


def subsets_of(service: Object, pods: list[Object]) -> list[Object]:
    """Subsets of the Endpoints of a Service. Ports with the same addresses share a subset."""
    headless = service["spec"].get("clusterIP") == "None"
    by_port: dict[bytes, tuple[list[Object], dict[str, bool]]] = {}
    addresses: dict[str, Object] = {}
    for pod in pods:
        ip = address_of(pod, address_types(service)[0])
        if not ip or not is_listed(pod, terminating=bool(service["spec"].get("publishNotReadyAddresses"))):
            continue
        addresses[ip] = {"ip": ip, "targetRef": target_reference(pod)}
        if pod["spec"].get("nodeName"):
            addresses[ip]["nodeName"] = pod["spec"]["nodeName"]
        if has_hostname(service, pod):
            addresses[ip]["hostname"] = pod["spec"]["hostname"]
        ready = bool(service["spec"].get("publishNotReadyAddresses")) or pod_ready(pod)
        ports: list[Object | None] = [*ports_of(service, pod)]
        if headless and not service["spec"].get("ports"):
            ports = [None]
        for port in ports:
            entry = by_port.setdefault(orjson.dumps(port), ([port] if port else [], {}))
            entry[1][ip] = ready
    return pack_subsets(list(by_port.values()), addresses)


def pack_subsets(
    by_port: list[tuple[list[Object], dict[str, bool]]], addresses: dict[str, Object]
) -> list[Object]:
    """Subsets of ports and their addresses, which are ready or not. Ports with the same addresses share one."""
    merged: dict[tuple[tuple[str, bool], ...], list[Object]] = {}
    for ports, states in by_port:
        merged.setdefault(tuple(sorted(states.items())), []).extend(ports)
    subsets = []
    for states_key, ports in merged.items():
        subset: Object = {}
        for part, is_ready in (("addresses", True), ("notReadyAddresses", False)):
            if entries := [addresses[ip] for ip, ready in states_key if ready == is_ready]:
                subset[part] = entries
        if ports:
            subset["ports"] = [{k: v for k, v in port.items() if k != "name" or v} for port in ports]
        subsets.append(subset)
    return subsets


def truncate(subsets: list[Object], capacity: int = CAPACITY) -> tuple[list[Object], bool]:
    """Subsets with at most `capacity` addresses, and whether some are missing. Addresses that are not ready are left
    out first. Every subset loses the same share."""
    ready = sum(len(subset.get("addresses", ())) for subset in subsets)
    total = ready + sum(len(subset.get("notReadyAddresses", ())) for subset in subsets)
    if total <= capacity:
        return subsets, False
    part = "addresses" if ready > capacity else "notReadyAddresses"
    most, count = (capacity, ready) if ready > capacity else (capacity - ready, total - ready)
    left, result = most, []
    for subset in subsets:
        kept = dict(subset)
        entries = subset.get(part, [])
        share = min(math.ceil(len(entries) / count * most), left)
        kept[part] = entries[:share]
        left -= len(kept[part])
        if part == "addresses":
            kept.pop("notReadyAddresses", None)
        result.append({key: value for key, value in kept.items() if value})
    return result, True
