"""Conversion of HorizontalPodAutoscalers between autoscaling/v2 and v1, which has fields for CPU utilization only.

v1 carries the other fields of v2 in annotations. These annotations never appear in v2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from kubist.api.kinds.autoscaling import v1metrics
from kubist.model.meta.object import Object

PREFIX = "autoscaling.alpha.kubernetes.io/"
METRICS, CURRENT_METRICS = f"{PREFIX}metrics", f"{PREFIX}current-metrics"
CONDITIONS, BEHAVIOR = f"{PREFIX}conditions", f"{PREFIX}behavior"
CARRIED = (
    METRICS,
    CURRENT_METRICS,
    CONDITIONS,
    BEHAVIOR,
    f"{PREFIX}scale-down-tolerance",
    f"{PREFIX}scale-up-tolerance",
)
DEFAULT_CPU_UTILIZATION = 80
_CONDITION = ("type", "status", "lastTransitionTime", "reason", "message")


def cpu_utilization(percent: int) -> Object:
    """Metric that has a field of its own in v1: the average utilization of CPU."""
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def drop_carried(obj: Object) -> None:
    """Removes the annotations that only v1 may have."""
    annotations = (obj.get("metadata") or {}).get("annotations")
    if annotations and any(name in annotations for name in CARRIED):
        kept = {name: text for name, text in annotations.items() if name not in CARRIED}
        obj["metadata"] = {**obj["metadata"], "annotations": kept}
        if not kept:
            del obj["metadata"]["annotations"]


def to_v1(obj: Object) -> Object:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    out = {**obj, "apiVersion": "autoscaling/v1"}
    drop_carried(out)
    metrics = spec.get("metrics") or []
    utilizations = [percent for metric in metrics if (percent := _cpu(metric, "target")) is not None]
    out["spec"] = _copied(spec, "scaleTargetRef", "minReplicas", "maxReplicas")
    if utilizations:
        out["spec"]["targetCPUUtilizationPercentage"] = utilizations[0]
    out["status"] = {"currentReplicas": 0, "desiredReplicas": 0} | _copied(
        status, "observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas"
    )
    current = status.get("currentMetrics") or []
    for metric in current:
        if (percent := _cpu(metric, "current")) is not None:
            out["status"]["currentCPUUtilizationPercentage"] = percent
    carried = {}
    if others := [metric for metric in metrics if _cpu(metric, "target") is None]:
        carried[METRICS] = v1metrics.dumps(v1metrics.specs_to_v1(others))
    if current:
        carried[CURRENT_METRICS] = v1metrics.dumps(v1metrics.statuses_to_v1(current))
    if "behavior" in spec:
        carried[BEHAVIOR] = v1metrics.dumps(v1metrics.behavior_to_v1(spec["behavior"]))
    if conditions := status.get("conditions"):
        carried[CONDITIONS] = v1metrics.dumps([_condition_to_v1(condition) for condition in conditions])
    if carried:
        meta = out.get("metadata") or {}
        out["metadata"] = {**meta, "annotations": {**(meta.get("annotations") or {}), **carried}}
    return out


def from_v1(obj: Object) -> Object:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    annotations = (obj.get("metadata") or {}).get("annotations") or {}
    out = {**obj, "apiVersion": "autoscaling/v2"}
    drop_carried(out)
    out["spec"] = _copied(spec, "scaleTargetRef", "minReplicas", "maxReplicas")
    metrics = _carried(annotations, METRICS, v1metrics.specs_from_v1) or []
    if "targetCPUUtilizationPercentage" in spec:
        metrics.append(cpu_utilization(spec["targetCPUUtilizationPercentage"]))
    out["spec"]["metrics"] = metrics or [cpu_utilization(DEFAULT_CPU_UTILIZATION)]
    if behavior := _carried(annotations, BEHAVIOR, v1metrics.behavior_from_v1):
        out["spec"]["behavior"] = behavior
    out["status"] = {"desiredReplicas": 0, "currentMetrics": None} | _copied(
        status, "observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas"
    )
    if not out["status"].get("currentReplicas"):
        out["status"].pop("currentReplicas", None)
    if "currentCPUUtilizationPercentage" in status:
        current = {"averageUtilization": status["currentCPUUtilizationPercentage"]}
        resource = {"name": "cpu", "current": current}
        out["status"]["currentMetrics"] = [{"type": "Resource", "resource": resource}]
    known = _carried(annotations, CURRENT_METRICS, v1metrics.statuses_from_v1)
    if known is not None:
        out["status"]["currentMetrics"] = known
    if conditions := _carried(annotations, CONDITIONS, _conditions_from_v1):
        out["status"]["conditions"] = conditions
    return out


def normalize_v1(obj: Object) -> None:
    """Rewrites the carrying annotations and the status as a v1 read would show them. Without metrics, sets the
    default CPU target."""
    metadata, status = obj["metadata"], obj.get("status") or {}
    annotations = metadata.get("annotations") or {}
    if "currentCPUUtilizationPercentage" in status or any(name in annotations for name in CARRIED):
        shown = to_v1(from_v1(obj))
        obj["status"] = shown["status"]
        annotations = shown["metadata"].get("annotations") or {}
        read = {name: annotations[name] for name in CARRIED if name in annotations}
        annotations = {n: text for n, text in annotations.items() if n not in CARRIED} | {
            name: annotations.get(name, text) for name, text in read.items()
        }
        metadata["annotations"] = annotations
        if not annotations:
            del metadata["annotations"]
    if METRICS not in annotations:
        obj["spec"].setdefault("targetCPUUtilizationPercentage", DEFAULT_CPU_UTILIZATION)


def _copied(source: Object, *names: str) -> Object:
    return {name: source[name] for name in names if name in source}


def _cpu(metric: Object, place: str) -> int | None:
    """Average CPU utilization in percent of a CPU resource metric, None for other metrics."""
    resource = metric.get("resource") or {}
    if metric.get("type") != "Resource" or resource.get("name") != "cpu":
        return None
    percent: int | None = (resource.get(place) or {}).get("averageUtilization")
    return percent


def _carried(annotations: dict[str, str], name: str, read: Callable[[Any], Any]) -> Any:
    """Value that an annotation carries, read with `read`; None if the annotation is absent or invalid."""
    if name not in annotations:
        return None
    try:
        return read(orjson.loads(annotations[name]))
    except ValueError:
        return None


def _condition_to_v1(condition: Object) -> Object:
    shown = {name: condition[name] for name in _CONDITION if name in condition}
    return {"type": "", "status": "", "lastTransitionTime": None} | shown


def _conditions_from_v1(value: Any) -> list[Object]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ValueError("conditions are a list of objects")
    conditions = []
    for item in value:
        given = {name.lower(): text for name, text in item.items()}
        condition = {name: given.get(name.lower()) for name in _CONDITION}
        if not all(text is None or isinstance(text, str) for text in condition.values()):
            raise ValueError("conditions are made of text")
        kept = {name: text for name, text in condition.items() if text}
        conditions.append({"type": "", "status": ""} | kept)
    return conditions
