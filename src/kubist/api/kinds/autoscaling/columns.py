"""Columns of HorizontalPodAutoscalers (v2) and Scales."""

from __future__ import annotations

from kubist.api.tables.cells import NONE, UNKNOWN, UNSET
from kubist.api.tables.columns import AGE, NAME, Column, Table, number, part
from kubist.model.meta.object import Object

NIL = "<nil>"


def _reference(autoscaler: Object) -> str:
    target = part(autoscaler, "spec", "scaleTargetRef")
    return f"{target.get('kind', '')}/{target.get('name', '')}"


def _targets(autoscaler: Object) -> str:
    """First two metrics, each as current/target."""
    specs = part(autoscaler, "spec", "metrics") or []
    statuses = part(autoscaler, "status", "currentMetrics") or []
    metrics = [_metric(spec, statuses[i] if i < len(statuses) else {}) for i, spec in enumerate(specs)]
    text = ", ".join(metrics[:2]) or NONE
    return f"{text} + {len(metrics) - 2} more..." if len(metrics) > 2 else text


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
    limit = target.get("averageUtilization")
    usage = UNKNOWN if current is None else f"{current}%"
    return f"{name}: {usage}/{'<auto>' if limit is None else f'{limit}%'}"


TABLES = {
    "HorizontalPodAutoscaler": Table(
        NAME,
        Column("Reference", "Object that is scaled.", cell=_reference),
        Column("Targets", "Current and target values of the metrics.", cell=_targets),
        Column(
            "MinPods",
            "Minimum number of pods.",
            cell=lambda autoscaler: str(part(autoscaler, "spec").get("minReplicas", UNSET)),
        ),
        Column("MaxPods", "Maximum number of pods.", path="spec.maxReplicas", absent=0),
        Column("Replicas", "Number of existing pods.", path="status.currentReplicas", absent=0),
        AGE,
    ),
    "Scale": Table(
        Column("Name", NAME.description, path=NAME.path),
        number("Desired", "Number of desired pods.", path="spec.replicas"),
        number("Available", "Number of existing pods.", path="status.replicas"),
        AGE,
    ),
}
