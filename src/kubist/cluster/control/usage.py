"""CPU and memory usage of simulated pods, for metrics.k8s.io and the HorizontalPodAutoscaler.

The usage of a container comes from the annotation `kubist.io/usage.NAME` of its pod, else from `kubist.io/usage`,
else from the container's resource requests.
"""

from __future__ import annotations

from kubist.base.caching import bounded_cache
from kubist.model.meta.object import Object
from kubist.model.meta.quantity import ZERO, Quantity, parse_quantity

ANNOTATION = "kubist.io/usage"
RESOURCES = ("cpu", "memory")

Usage = dict[str, Quantity]
"""Quantities of `cpu` and `memory`."""


def usage_of(pod: Object) -> dict[str, Usage]:
    """Usage of each running container, by container name. Empty if no container runs.

    A malformed annotation is ignored, so the next source applies; `usage_problem` describes its fault.
    """
    spec, metadata = pod["spec"], pod["metadata"]
    running = _running_containers(pod.get("status") or {})
    if not running:
        return {}
    annotations = metadata.get("annotations") or {}
    of_pod = _annotated(annotations.get(ANNOTATION))
    usages = {}
    for container in (*(spec.get("initContainers") or ()), *spec["containers"]):
        name = container["name"]
        if name in running:
            requests = (container.get("resources") or {}).get("requests") or {}
            usage = {resource: parse_quantity(requests.get(resource, "0")) for resource in RESOURCES}
            usages[name] = usage | of_pod | _annotated(annotations.get(f"{ANNOTATION}.{name}"))
    return usages


def total(usages: dict[str, Usage]) -> Usage:
    """Sum over the containers of a pod."""
    totals = dict.fromkeys(RESOURCES, ZERO)
    for usage in usages.values():
        for resource in RESOURCES:
            totals[resource] += usage[resource]
    return totals


@bounded_cache(entries=1024, key_length=256)
def parse_usage(text: str) -> Usage:
    """Usage in an annotation, such as `cpu=250m,memory=64Mi`. ValueError if it is malformed."""
    usage: Usage = {}
    for part in text.split(","):
        resource, equals, amount = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise ValueError(f'"{part.strip()}" is not of the form cpu=AMOUNT or memory=AMOUNT')
        if resource not in RESOURCES:
            raise ValueError(f'"{resource}" is not a resource with a usage; use cpu or memory')
        try:
            quantity = parse_quantity(amount)
        except ValueError:
            raise ValueError(
                f'"{amount}" is not a quantity; write for example cpu=250m or memory=64Mi'
            ) from None
        if quantity < ZERO:
            raise ValueError(f"{resource} must not be negative")
        usage[resource] = quantity
    return usage


def usage_problem(annotations: dict[str, str]) -> str:
    """First malformed usage annotation and its fault. Empty if there is none."""
    for key, text in annotations.items():
        if key == ANNOTATION or key.startswith(f"{ANNOTATION}."):
            try:
                parse_usage(text)
            except ValueError as error:
                return f"annotation {key}: {error}"
    return ""


def _annotated(text: str | None) -> Usage:
    if not text:
        return {}
    try:
        return parse_usage(text)
    except ValueError:
        return {}


def _running_containers(status: Object) -> set[str]:
    """Names of the running containers and sidecars, by the status of the pod."""
    statuses = (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ()))
    return {container["name"] for container in statuses if "running" in (container.get("state") or {})}
