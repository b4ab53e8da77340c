"""Conversion of HorizontalPodAutoscalers between autoscaling/v2 and v1, which has fields only for CPU utilization.

v1 carries the other fields of v2 in annotations. These annotations never appear in v2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

from kubist.api.resources.strategy import at
from kubist.model.meta.object import Object
from kubist.model.meta.quantity import canonical_quantity

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
    """Metric with its own field in v1: the average CPU utilization."""
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
        carried[METRICS] = _dumps(_specs_to_v1(others))
    if current:
        carried[CURRENT_METRICS] = _dumps(_statuses_to_v1(current))
    if "behavior" in spec:
        carried[BEHAVIOR] = _dumps(_behavior_to_v1(spec["behavior"]))
    if conditions := status.get("conditions"):
        carried[CONDITIONS] = _dumps([_condition_to_v1(condition) for condition in conditions])
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
    metrics = _carried(annotations, METRICS, _specs_from_v1) or []
    if "targetCPUUtilizationPercentage" in spec:
        metrics.append(cpu_utilization(spec["targetCPUUtilizationPercentage"]))
    out["spec"]["metrics"] = metrics or [cpu_utilization(DEFAULT_CPU_UTILIZATION)]
    if behavior := _carried(annotations, BEHAVIOR, _behavior_from_v1):
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
    known = _carried(annotations, CURRENT_METRICS, _statuses_from_v1)
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
        v1_object = to_v1(from_v1(obj))
        obj["status"] = v1_object["status"]
        annotations = v1_object["metadata"].get("annotations") or {}
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
    fields = {name: condition[name] for name in _CONDITION if name in condition}
    return {"type": "", "status": "", "lastTransitionTime": None} | fields


def _conditions_from_v1(value: Any) -> list[Object]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ValueError("conditions are a list of objects")
    conditions = []
    for item in value:
        texts = {name.lower(): text for name, text in item.items()}
        condition = {name: texts.get(name.lower()) for name in _CONDITION}
        if not all(text is None or isinstance(text, str) for text in condition.values()):
            raise ValueError("conditions are made of text")
        kept = {name: text for name, text in condition.items() if text}
        conditions.append({"type": "", "status": ""} | kept)
    return conditions


@dataclass(slots=True, frozen=True)
class _Field:
    """A field: its name in v1, its dotted path in v2, its reader, and its zero value if v1 always writes it."""

    name: str
    place: str
    read: Callable[[Any], Any]
    zero: Any = None


def _typed(*types: type) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if not isinstance(value, types) or isinstance(value, bool):
            raise ValueError(f"unexpected {value!r}")
        return value

    return read


_text = _typed(str)
_integer = _typed(int)


def _quantity(value: Any) -> str:
    return canonical_quantity(str(_typed(str, int, float)(value)))


def _reference(value: Any) -> Object:
    data = _struct(value)
    reference = {name: _text(data[name.lower()]) for name in ("kind", "name") if data.get(name.lower())}
    if data.get("apiversion"):
        reference["apiVersion"] = _text(data["apiversion"])
    return {"kind": "", "name": ""} | reference


def _selector(value: Any) -> Object:
    data = _struct(value)
    selector: Object = {}
    if data.get("matchlabels"):
        labels = _typed(dict)(data["matchlabels"])
        selector["matchLabels"] = {key: _text(labels[key]) for key in sorted(labels)}
    if data.get("matchexpressions"):
        selector["matchExpressions"] = [_expression(item) for item in _typed(list)(data["matchexpressions"])]
    return selector


def _expression(value: Any) -> Object:
    data = _struct(value)
    expression: Object = {name: _text(data.get(name) or "") for name in ("key", "operator")}
    if data.get("values"):
        expression["values"] = [_text(item) for item in _typed(list)(data["values"])]
    return expression


def _struct(value: Any) -> Object:
    """JSON object with lower-case keys, because the keys are case-insensitive."""
    return {name.lower(): item for name, item in _typed(dict)(value).items()}


def _flat(amount: str, place: str) -> dict[str, tuple[_Field, ...]]:
    """Fields of all metric sources. `amount` is `target` or `current` in v1 names; `place` is the struct in v2.
    `target` and `current` differ only in the amounts that v1 always writes."""
    current = amount == "current"
    described = _Field("target", "describedObject", _reference, {"kind": "", "name": ""})
    metric = _Field("metricName", "metric.name", _text, "")
    selector = _Field("selector", "metric.selector", _selector)
    name = _Field("name", "name", _text, "")
    utilization = _Field(f"{amount}AverageUtilization", f"{place}.averageUtilization", _integer)
    average = _Field(f"{amount}AverageValue", f"{place}.averageValue", _quantity)
    sure_average = _Field(f"{amount}AverageValue", f"{place}.averageValue", _quantity, "0")
    value = _Field(f"{amount}Value", f"{place}.value", _quantity)
    sure_value = _Field(f"{amount}Value", f"{place}.value", _quantity, "0")
    resource = (name, utilization, sure_average if current else average)
    return {
        "object": (
            described,
            metric,
            sure_value,
            selector,
            _Field("averageValue", f"{place}.averageValue", _quantity),
        ),
        "pods": (metric, sure_average, selector),
        "resource": resource,
        "containerResource": (*resource, _Field("container", "container", _text, "")),
        "external": (
            metric,
            _Field("metricSelector", "metric.selector", _selector),
            sure_value if current else value,
            average,
        ),
    }


_SPEC = _flat("target", "target")
_STATUS = _flat("current", "current")


def _specs_to_v1(metrics: list[Object]) -> list[Object]:
    return [_to_v1(metric, _SPEC) for metric in metrics]


def _statuses_to_v1(metrics: list[Object]) -> list[Object]:
    return [_to_v1(metric, _STATUS) for metric in metrics]


def _specs_from_v1(value: Any) -> list[Object]:
    metrics = [_from_v1(metric, _SPEC) for metric in _typed(list)(value if value is not None else [])]
    for metric in metrics:
        for source in metric.keys() & _SPEC.keys():
            _add_target_type(source, metric[source].setdefault("target", {}))
    return metrics


def _statuses_from_v1(value: Any) -> list[Object]:
    return [_from_v1(metric, _STATUS) for metric in _typed(list)(value if value is not None else [])]


def _to_v1(metric: Object, sources: dict[str, tuple[_Field, ...]]) -> Object:
    flat: Object = {"type": metric.get("type", "")}
    for source, fields in sources.items():
        if source not in metric:
            continue
        flat[source] = {}
        for field in fields:
            value = at(metric[source], field.place)
            if value is None:
                value = field.zero
            if value is not None:
                flat[source][field.name] = field.read(value)
    return flat


def _from_v1(value: Any, sources: dict[str, tuple[_Field, ...]]) -> Object:
    data = _struct(value)
    metric: Object = {"type": _text(data.get("type") or "")}
    for source, fields in sources.items():
        flat = data.get(source.lower())
        if flat is None:
            continue
        flat = _struct(flat)
        metric[source] = {}
        for field in fields:
            item = flat.get(field.name.lower())
            item = field.zero if item is None else field.read(item)
            if item is not None:
                _put(metric[source], field.place, item)
    return metric


def _put(obj: Object, place: str, value: Any) -> None:
    *parents, last = place.split(".")
    for parent in parents:
        obj = obj.setdefault(parent, {})
    obj[last] = value


def _add_target_type(source: str, target: Object) -> None:
    """Sets the target's type, which v1 does not have, from the fields that are set."""
    if source in ("resource", "containerResource"):
        target["type"] = "Utilization" if "averageUtilization" in target else "AverageValue"
    elif source == "external":
        target["type"] = "Value" if "value" in target else "AverageValue"
    elif source == "pods" or "averageValue" in target:
        target["type"] = "AverageValue"
        if target.get("value") == "0":
            # v1 always writes an object's value. 0 means unset, because no target is zero.
            del target["value"]
    else:
        target["type"] = "Value"


_RULES = ("StabilizationWindowSeconds", "SelectPolicy", "Policies", "Tolerance")
_POLICY = {"Type": "", "Value": 0, "PeriodSeconds": 0}


def _behavior_to_v1(behavior: Object) -> Object:
    """Scaling rules with Go field names, nulls included."""
    return {
        direction: _rules_to_v1(behavior.get(_lower(direction))) for direction in ("ScaleUp", "ScaleDown")
    }


def _rules_to_v1(rules: Object | None) -> Object | None:
    if rules is None:
        return None
    v1_rules: Object = {name: rules.get(_lower(name)) for name in _RULES}
    if v1_rules["Policies"] is not None:
        v1_rules["Policies"] = [
            {name: policy.get(_lower(name), zero) for name, zero in _POLICY.items()}
            for policy in v1_rules["Policies"]
        ]
    return v1_rules


def _behavior_from_v1(value: Any) -> Object:
    data = _struct(value if value is not None else {})
    return {
        direction: _rules_from_v1(data[direction.lower()])
        for direction in ("scaleUp", "scaleDown")
        if data.get(direction.lower()) is not None
    }


def _rules_from_v1(value: Any) -> Object:
    data = _struct(value)
    readers = (_integer, _text, _policies, _quantity)
    return {
        _lower(name): read(data[name.lower()])
        for name, read in zip(_RULES, readers, strict=True)
        if data.get(name.lower()) is not None
    }


def _policies(value: Any) -> list[Object]:
    policies = []
    for item in _typed(list)(value):
        data = _struct(item)
        policies.append(
            {
                _lower(name): _typed(type(zero))(data.get(name.lower()) or zero)
                for name, zero in _POLICY.items()
            }
        )
    return policies


def _lower(name: str) -> str:
    return name[0].lower() + name[1:]


def _dumps(value: Any) -> str:
    """JSON text as Go's encoder writes it: `<`, `>`, `&`, U+2028 and U+2029 are escaped."""
    text = orjson.dumps(value).decode()
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text
