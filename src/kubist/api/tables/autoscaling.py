"""Tables of HorizontalPodAutoscalers (v2) and Scales."""

from __future__ import annotations

from kubist.api.tables.ages import Cell, age
from kubist.api.tables.columns import AGE, NAME, Column, Table, name_of, number
from kubist.api.tables.shared import NONE, UNKNOWN, UNSET, part
from kubist.model.meta.object import Object

NIL = "<nil>"


def _autoscaler(obj: Object) -> list[Cell]:
    spec, status = part(obj, "spec"), part(obj, "status")
    target = part(spec, "scaleTargetRef")
    return [
        name_of(obj),
        f"{target.get('kind', '')}/{target.get('name', '')}",
        _metrics(spec.get("metrics") or [], status.get("currentMetrics") or []),
        str(spec.get("minReplicas", UNSET)),
        spec.get("maxReplicas", 0),
        status.get("currentReplicas", 0),
        age(obj),
    ]


def _metrics(specs: list[Object], statuses: list[Object]) -> str:
    """First two metrics, each as current/target."""
    shown = [_metric(spec, statuses[i] if i < len(statuses) else {}) for i, spec in enumerate(specs)]
    text = ", ".join(shown[:2]) or NONE
    return f"{text} + {len(shown) - 2} more..." if len(shown) > 2 else text


def _metric(spec: Object, status: Object) -> str:
    match spec.get("type"):
        case "External":
            return _average_or_value(spec["external"], status.get("external"))
        case "Object":
            return _average_or_value(spec["object"], status.get("object"))
        case "Pods":
            return _versus(status.get("pods"), spec["pods"]["target"], "averageValue")
        case "Resource":
            return _utilization(spec["resource"], status.get("resource"))
        case "ContainerResource":
            return _utilization(spec["containerResource"], status.get("containerResource"))
    return "<unknown type>"


def _versus(status: Object | None, target: Object, field: str) -> str:
    current = UNKNOWN if status is None else part(status, "current").get(field, NIL)
    return f"{current}/{target.get(field, NIL)}"


def _average_or_value(source: Object, status: Object | None) -> str:
    target = part(source, "target")
    if "averageValue" not in target:
        return _versus(status, target, "value")
    known = status is not None and "averageValue" in part(status, "current")
    return _versus(status if known else None, target, "averageValue") + " (avg)"


def _utilization(source: Object, status: Object | None) -> str:
    name, target = source.get("name", ""), part(source, "target")
    if "averageValue" in target:
        return f"{name}: {_versus(status, target, 'averageValue')}"
    current = part(status or {}, "current").get("averageUtilization")
    wanted = target.get("averageUtilization")
    shown = UNKNOWN if current is None else f"{current}%"
    return f"{name}: {shown}/{'<auto>' if wanted is None else f'{wanted}%'}"


def _scale(obj: Object) -> list[Cell]:
    spec, status = part(obj, "spec"), part(obj, "status")
    return [name_of(obj), spec.get("replicas", 0), status.get("replicas", 0), age(obj)]


TABLES = {
    "HorizontalPodAutoscaler": Table(
        (
            NAME,
            Column("Reference", "Object that is scaled."),
            Column("Targets", "Current and target values of the metrics."),
            Column("MinPods", "Minimum number of pods."),
            Column("MaxPods", "Maximum number of pods."),
            Column("Replicas", "Number of existing pods."),
            AGE,
        ),
        _autoscaler,
    ),
    "Scale": Table(
        (
            Column("Name", NAME.description),
            number("Desired", "Number of desired pods."),
            number("Available", "Number of existing pods."),
            AGE,
        ),
        _scale,
    ),
}
