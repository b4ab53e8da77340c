"""The quality of service that a pod's resources buy it."""

from __future__ import annotations

from typing import Any

from kubist.meta.quantity import Quantity, parse_quantity

Object = dict[str, Any]

_COMPUTE = ("cpu", "memory")


def qos_class(spec: Object) -> str:
    """Guaranteed if cpu and memory are limited and requested alike everywhere, BestEffort if nowhere."""
    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}
    guaranteed = True
    if "resources" in spec:
        resources = spec["resources"]
        _add(requests, resources.get("requests"))
        if resources.get("limits"):
            guaranteed = _add(limits, resources["limits"]) == 2
    else:
        for field in ("containers", "initContainers"):
            for container in spec.get(field) or ():
                resources = container.get("resources")
                if not resources:
                    guaranteed = False
                    continue
                _add(requests, resources.get("requests"))
                if _add(limits, resources.get("limits")) != 2:
                    guaranteed = False
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if guaranteed and requests == limits else "Burstable"


def _add(total: dict[str, Quantity], amounts: dict[str, str] | None) -> int:
    """Add the cpu and memory of a resource list; how many of the two it has."""
    found = 0
    if amounts:
        for name in _COMPUTE:
            if name in amounts and (amount := parse_quantity(amounts[name])).nanos > 0:
                total[name] = total[name] + amount if name in total else amount
                found += 1
    return found
