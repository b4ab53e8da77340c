"""QoS class of a pod, computed from its resources."""

from __future__ import annotations

from kubist.meta.object import Object
from kubist.meta.quantity import Quantity, parse_quantity

_COMPUTE = ("cpu", "memory")


def qos_class(spec: Object) -> str:
    """Guaranteed if every container has equal limits and requests for cpu and memory, BestEffort if none has any,
    else Burstable. Pod-level resources take precedence."""
    if "resources" in spec:
        parts = [spec["resources"]]
    else:
        containers = (spec.get("containers") or []) + (spec.get("initContainers") or [])
        parts = [container.get("resources") or {} for container in containers]
    if _is_best_effort(parts):
        return "BestEffort"
    return "Guaranteed" if _is_guaranteed(parts) else "Burstable"


def _is_best_effort(parts: list[Object]) -> bool:
    """Whether no part has a request or limit of cpu or memory."""
    return not any(_add({}, part.get(field)) for part in parts for field in ("requests", "limits"))


def _is_guaranteed(parts: list[Object]) -> bool:
    """Whether every part limits cpu and memory, and all requests together equal all limits."""
    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}
    for part in parts:
        if _add(limits, part.get("limits")) < len(_COMPUTE):
            return False
        _add(requests, part.get("requests"))
    return requests == limits


def _add(total: dict[str, Quantity], amounts: dict[str, str] | None) -> int:
    """Adds cpu and memory of a resource list to `total`. Returns how many of the two it has (0 to 2)."""
    found = 0
    if amounts:
        for name in _COMPUTE:
            if name in amounts and (amount := parse_quantity(amounts[name])).nanos > 0:
                total[name] = total[name] + amount if name in total else amount
                found += 1
    return found
