"""Cells that many kinds share: labels, selectors, containers, conditions, long lists."""

from __future__ import annotations

from typing import Any

from kubist.api.tables.ages import Cell, age
from kubist.api.tables.columns import Column, name_of, wide
from kubist.model.meta.object import Object
from kubist.model.meta.selectors import format_label_selector, go_label_selector

NONE = "<none>"
UNSET = "<unset>"
UNKNOWN = "<unknown>"

CONTAINERS = (
    wide("Containers", "Names of the containers in the template."),
    wide("Images", "Images that the containers of the template run."),
)
SELECTOR = wide("Selector", "Labels of the selected pods.")
WORKLOAD: tuple[Column, ...] = (*CONTAINERS, SELECTOR)


def part(obj: Object, *path: str) -> Any:
    """Struct or list at a path. An empty struct if it does not exist."""
    for name in path:
        obj = obj.get(name) or {}
    return obj


def labels(values: dict[str, str] | None) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((values or {}).items())) or NONE


def selector(value: Object | None) -> str:
    try:
        return format_label_selector(value) or NONE
    except ValueError:
        return "<error>"


def containers(spec: Object) -> list[str]:
    """Two cells: container names and images."""
    found = spec.get("containers") or []
    return [
        ",".join(container.get("name", "") for container in found),
        ",".join(container.get("image", "") for container in found),
    ]


def replicated(obj: Object, selector_text: str) -> list[Cell]:
    """Cells of a ReplicaSet or ReplicationController."""
    spec, status = part(obj, "spec"), part(obj, "status")
    return [
        name_of(obj),
        spec.get("replicas", 0),
        status.get("replicas", 0),
        status.get("readyReplicas", 0),
        age(obj),
        *containers(part(spec, "template", "spec")),
        selector_text,
    ]


def condition(conditions: list[Object] | None, type: str) -> Object | None:
    return next((found for found in conditions or () if found.get("type") == type), None)


def is_true(conditions: list[Object] | None, type: str) -> bool:
    found = condition(conditions, type)
    return found is not None and found.get("status") == "True"


def shortened(texts: list[str], most: int = 3) -> str:
    """First `most` texts, and the number of others."""
    shown = ",".join(texts[:most])
    return f"{shown} + {len(texts) - most} more..." if len(texts) > most else shown


def load_balancer(status: Object) -> str:
    """Addresses of a load balancer, sorted and without duplicates."""
    found = {point.get("ip") or point.get("hostname") or "" for point in status.get("ingress") or ()}
    return ",".join(sorted(found - {""}))


def param_ref(ref: Object | None) -> str:
    """Cell for the parameters of an admission policy binding."""
    if ref is None:
        return UNSET
    if ref.get("name"):
        return f"{ref.get('namespace') or '*'}/{ref['name']}"
    return go_label_selector(ref["selector"]) if ref.get("selector") is not None else UNSET
