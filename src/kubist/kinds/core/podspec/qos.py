"""QoS class of a pod, computed from its resources."""

from __future__ import annotations

from kubist.meta.object import Object
from kubist.meta.quantity import Quantity, parse_quantity

_COMPUTE = ("cpu", "memory")


def qos_class(spec: Object) -> str:
    """Guaranteed if every container has equal limits and requests for cpu and memory, BestEffort if none has any,
    else Burstable. Pod-level resources take precedence."""
    if "resources" in spec:
        return _of_pod(spec["resources"])
    return _of_containers((spec.get("containers") or []) + (spec.get("initContainers") or []))


def _of_pod(resources: Object) -> str:
    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}
    guaranteed = True
    _add(requests, resources.get("requests"))
    if resources.get("limits"):
        guaranteed = _add(limits, resources["limits"]) == 2
    return _class(requests, limits, guaranteed)


def _of_containers(containers: list[Object]) -> str:
    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}
    guaranteed = True
    for container in containers:
        resources = container.get("resources")
        if not resources:
            guaranteed = False
            continue
        _add(requests, resources.get("requests"))
        if _add(limits, resources.get("limits")) != 2:
            guaranteed = False
    return _class(requests, limits, guaranteed)


def _class(requests: dict[str, Quantity], limits: dict[str, Quantity], guaranteed: bool) -> str:
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if guaranteed and requests == limits else "Burstable"


def _add(total: dict[str, Quantity], amounts: dict[str, str] | None) -> int:
    """Adds cpu and memory of a resource list to `total`. Returns how many of the two it has (0 to 2)."""
    found = 0
    if amounts:
        for name in _COMPUTE:
            if name in amounts and (amount := parse_quantity(amounts[name])).nanos > 0:
                total[name] = total[name] + amount if name in total else amount
                found += 1
    return found
