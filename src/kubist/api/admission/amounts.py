"""Amounts of resources: arithmetic on resource lists, and the total requests and limits of a pod."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubist.model.meta.object import Object
from kubist.model.meta.quantity import Quantity, parse_quantity

Amounts = dict[str, Quantity]

POD_LEVEL = ("cpu", "memory", "hugepages-")
"""Name prefixes of the resources that a pod may set in spec.resources."""


def read(listed: Mapping[str, str] | None) -> Amounts:
    return {name: parse_quantity(text) for name, text in (listed or {}).items()}


def write(amounts: Amounts) -> dict[str, str]:
    return {name: str(amount) for name, amount in amounts.items()}


def add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        current = total.get(name)
        total[name] = amount if current is None else current + amount


def raise_to(total: Amounts, floor: Amounts) -> None:
    """Raises each amount in `total` to at least the amount in `floor`."""
    for name, amount in floor.items():
        current = total.get(name)
        if current is None or amount > current:
            total[name] = amount


def mask(amounts: Amounts, names: Iterable[str]) -> Amounts:
    return {name: amounts[name] for name in names if name in amounts}


def pod_requests(pod: Object, *, running: bool = False, overhead: bool = True) -> Amounts:
    """Total requests of a pod: the sum of its containers, or the peak of its init containers if that is higher. With
    `running`, resources that the status reports as allocated count too."""
    total = _aggregate(pod, "requests", running)
    if overhead:
        add(total, read(pod["spec"].get("overhead")))
    return total


def pod_limits(pod: Object, *, running: bool = False, overhead: bool = True) -> Amounts:
    """Total limits of a pod, computed like `pod_requests`. Overhead is added only to limits that are set."""
    total = _aggregate(pod, "limits", running)
    if overhead:
        extra = read(pod["spec"].get("overhead"))
        add(total, {name: amount for name, amount in extra.items() if total.get(name)})
    return total


def _aggregate(pod: Object, side: str, running: bool) -> Amounts:
    spec = pod["spec"]
    statuses = _statuses(pod) if running else {}
    infeasible = running and _resize_infeasible(pod)
    total: Amounts = {}
    for container in spec.get("containers") or ():
        add(total, _container(container, statuses, side, infeasible))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("initContainers") or ():
        if container.get("restartPolicy") == "Always":
            amounts = _container(container, statuses, side, infeasible)
            add(total, amounts)
            add(sidecars, amounts)
            step = sidecars
        else:
            step = read((container.get("resources") or {}).get(side))
            add(step, sidecars)
        raise_to(peak, step)
    raise_to(total, peak)
    whole = read((spec.get("resources") or {}).get(side))
    total.update({name: amount for name, amount in whole.items() if name.startswith(POD_LEVEL)})
    return total


def _container(container: Object, statuses: dict[str, Object], side: str, infeasible: bool) -> Amounts:
    spec_amounts = read((container.get("resources") or {}).get(side))
    status = statuses.get(container.get("name", ""))
    if status is None or status.get("resources") is None:
        return spec_amounts
    amounts = {} if infeasible else spec_amounts
    raise_to(amounts, read(status["resources"].get(side)))
    if side == "requests":
        raise_to(amounts, read(status.get("allocatedResources")))
    return amounts


def _statuses(pod: Object) -> dict[str, Object]:
    status = pod.get("status") or {}
    listed = (*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ()))
    return {entry.get("name", ""): entry for entry in listed}


def _resize_infeasible(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(c.get("type") == "PodResizePending" and c.get("reason") == "Infeasible" for c in conditions)
