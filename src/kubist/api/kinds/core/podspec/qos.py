"""QoS class of a pod, computed from its resources."""

from __future__ import annotations

from orjson import dumps, loads

from kubist.base.caching import bounded_cache
from kubist.model.meta.object import Object
from kubist.model.meta.quantity import Quantity, parse_quantity

_COMPUTE = ("cpu", "memory")


def qos_class(spec: Object) -> str:
    """Guaranteed if every container has equal limits and requests for cpu and memory, BestEffort if none has any,
    else Burstable. Pod-level resources take precedence."""
    if "resources" in spec:
        return _class(dumps([spec["resources"]]))
    containers = (spec.get("containers") or []) + (spec.get("initContainers") or [])
    return _class(dumps([container.get("resources") for container in containers]))


@bounded_cache(entries=4096, key_length=1024)
def _class(written: bytes) -> str:
    """QoS class of resource requirements, a list in JSON: the key of the cache. Pods of one template have the same."""
    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}
    guaranteed = True
    for resources in loads(written):
        if not resources:
            guaranteed = False
            continue
        _add(requests, resources.get("requests"))
        if _add(limits, resources.get("limits")) < len(_COMPUTE):
            guaranteed = False
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
