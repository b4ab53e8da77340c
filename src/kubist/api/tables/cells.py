"""Cells and columns that many kinds share: labels, selectors, containers, conditions, long lists."""

from __future__ import annotations

from collections.abc import Callable

from kubist.api.tables.columns import Column, number, part, wide
from kubist.model.meta.object import Object
from kubist.model.meta.selectors import format_label_selector

NONE = "<none>"
UNSET = "<unset>"
UNKNOWN = "<unknown>"


def labels(values: dict[str, str] | None) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((values or {}).items())) or NONE


def selector(value: Object | None) -> str:
    try:
        return format_label_selector(value) or NONE
    except ValueError:
        return "<error>"


def condition(conditions: list[Object] | None, type: str) -> Object | None:
    return next((each for each in conditions or () if each.get("type") == type), None)


def is_true(conditions: list[Object] | None, type: str) -> bool:
    first = condition(conditions, type)
    return first is not None and first.get("status") == "True"


def shortened(texts: list[str], most: int = 3) -> str:
    """First `most` texts, and the number of others."""
    text = ",".join(texts[:most])
    return f"{text} + {len(texts) - most} more..." if len(texts) > most else text


def load_balancer(status: Object) -> str:
    """Addresses of a load balancer, sorted and without duplicates."""
    addresses = {point.get("ip") or point.get("hostname") or "" for point in status.get("ingress") or ()}
    return ",".join(sorted(addresses - {""}))


def size(path: str) -> Callable[[Object], int]:
    """Function for the number of items of the list or map at a path."""
    names = path.split(".")
    return lambda obj: len(part(obj, *names))


def joined(path: str, field: str) -> Callable[[Object], str]:
    """Function for one field of all items of the list at a path, joined by commas."""
    names = path.split(".")
    return lambda obj: ",".join(item.get(field, "") for item in part(obj, *names))


def containers(path: str = "spec.template.spec.containers") -> tuple[Column, Column]:
    return (
        wide("Containers", "Names of the containers in the template.", cell=joined(path, "name")),
        wide("Images", "Images that the containers of the template run.", cell=joined(path, "image")),
    )


CONTAINERS = containers()
SELECTOR = wide(
    "Selector", "Labels of the selected pods.", cell=lambda obj: selector(part(obj, "spec").get("selector"))
)
REPLICAS = (
    number("Desired", "Number of desired pods.", path="spec.replicas"),
    number("Current", "Number of existing pods.", path="status.replicas"),
    number("Ready", "Number of ready pods.", path="status.readyReplicas"),
)
