"""Metrics of a HorizontalPodAutoscaler: the replicas that they require, and the status by type.

Custom and external metrics are not served. Amounts are integers in thousandths, as in the reference, so that rounding
is the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from kubist.cluster.control.usage import Usage
from kubist.model.meta.conditions import find
from kubist.model.meta.object import Object
from kubist.model.meta.quantity import BINARY_SI, DECIMAL_SI, ZERO, Quantity, parse_quantity
from kubist.model.meta.selectors import go_label_selector
from kubist.model.meta.times import parse_time

_CPU_INITIALIZATION_SECONDS = 300
"""Time after its start in which the CPU usage of a pod counts only while it is ready."""
_INITIAL_READINESS_SECONDS = 30
"""A pod that became unready within this time after its start counts as never ready."""
_NO_METRICS = "did not receive metrics for targeted pods (pods might be unready)"
_NO_PODS = "no pods returned by selector while calculating replica count"


class _MetricError(ValueError):
    """Metric that cannot be computed. The text is shown in conditions and Events."""


class Tolerance(NamedTuple):
    """Relative differences from the target that do not cause scaling."""

    down: float = 0.1
    up: float = 0.1

    def covers(self, ratio: float) -> bool:
        return 1.0 - self.down <= ratio <= 1.0 + self.up


class _Proposal(NamedTuple):
    replicas: int
    average: int
    """Average usage of a pod in thousandths."""
    utilization: int | None = None
    """Usage in percent of the requests."""


@dataclass(slots=True)
class _Groups:
    """Pods of a target by the use of their metrics."""

    ready: int = 0
    unready: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)
    ignored: set[str] = field(default_factory=set)


def _measured(usages: dict[str, dict[str, Usage]], resource: str, container: str) -> dict[str, int]:
    """Usage of a resource by pod name: of one container, or of all if no container is named."""
    if not usages:
        raise _MetricError(
            f"unable to get metrics for resource {resource}: no metrics returned from resource metrics API"
        )
    by_pod = {}
    for pod, containers in usages.items():
        if container:
            containers = {name: usage for name, usage in containers.items() if name == container}
        if containers and all(resource in usage for usage in containers.values()):
            by_pod[pod] = sum(usage[resource].milli_value() for usage in containers.values())
    return by_pod


def group_pods(pods: list[Object], metrics: dict[str, int], resource: str, now: float) -> _Groups:
    groups = _Groups()
    for pod in pods:
        name, status = pod["metadata"]["name"], pod["status"]
        if "deletionTimestamp" in pod["metadata"] or status.get("phase") == "Failed":
            groups.ignored.add(name)
        elif status.get("phase") == "Pending":
            groups.unready.add(name)
        elif name not in metrics:
            groups.missing.add(name)
        elif resource == "cpu" and _is_initializing(status, now):
            groups.unready.add(name)
        else:
            groups.ready += 1
    return groups


def _is_initializing(status: Object, now: float) -> bool:
    """Whether the CPU usage of a pod does not count yet, because the pod starts."""
    ready = find(status.get("conditions"), "Ready")
    if ready is None or "startTime" not in status:
        return True
    started, is_unready = parse_time(status["startTime"]), bool(ready["status"] == "False")
    if started + _CPU_INITIALIZATION_SECONDS > now:
        return is_unready
    changed = ready.get("lastTransitionTime")
    return is_unready and (not changed or started + _INITIAL_READINESS_SECONDS > parse_time(changed))


def _requests_of(pods: list[Object], resource: str, container: str) -> dict[str, int]:
    """Request of a resource by pod name."""
    return {pod["metadata"]["name"]: _request(pod, resource, container) for pod in pods}


def _request(pod: Object, resource: str, container: str) -> int:
    spec, name = pod["spec"], pod["metadata"]["name"]
    of_pod = (spec.get("resources") or {}).get("requests") or {}
    if of_pod and not container and resource in of_pod:
        overhead = parse_quantity((spec.get("overhead") or {}).get(resource, "0"))
        return (parse_quantity(of_pod[resource]) + overhead).milli_value()
    sidecars = [one for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always"]
    chosen = [one for one in (*spec["containers"], *sidecars) if container in ("", one["name"])]
    if not chosen:
        raise _MetricError(f"container {container} not found in Pod {name}")
    total = ZERO
    for one in chosen:
        requests = (one.get("resources") or {}).get("requests") or {}
        if resource not in requests:
            raise _MetricError(f"missing request for {resource} in container {one['name']} of Pod {name}")
        total += parse_quantity(requests[resource])
    return total.milli_value()


def _for_utilization(
    current: int,
    target: int,
    pods: list[Object],
    metrics: dict[str, int],
    resource: str,
    container: str,
    tolerance: Tolerance,
    now: float,
) -> _Proposal:
    """Replicas for a target in percent of the requests."""
    groups, metrics = _usable(pods, metrics, resource, now)
    requests = _requests_of(pods, resource, container)

    def measure(metrics: dict[str, int]) -> tuple[float, int, int]:
        """Ratio to the target, utilization in percent, average usage."""
        used = [(usage, requests[pod]) for pod, usage in metrics.items() if pod in requests]
        total = sum(request for _, request in used)
        if not total:
            raise _MetricError("no metrics returned matched known pods")
        usage = sum(usage for usage, _ in used)
        utilization = usage * 100 // total
        return utilization / target, utilization, usage // len(used)

    ratio, utilization, average = measure(metrics)
    share = max(100, target)
    fallback = {pod: requests[pod] * share // 100 for pod in groups.missing}
    corrected = _corrected(groups, metrics, ratio, fallback)
    new_ratio = measure(corrected)[0] if corrected is not None else ratio
    return _Proposal(_replicas(current, groups, ratio, new_ratio, corrected, tolerance), average, utilization)


def _for_average(
    current: int,
    target: int,
    pods: list[Object],
    metrics: dict[str, int],
    resource: str,
    tolerance: Tolerance,
    now: float,
) -> _Proposal:
    """Replicas for a target of the average usage."""
    groups, metrics = _usable(pods, metrics, resource, now)
    average = sum(metrics.values()) // len(metrics)
    ratio = average / target
    corrected = _corrected(groups, metrics, ratio, dict.fromkeys(groups.missing, target))
    new_ratio = ratio
    if corrected is not None:
        new_ratio = sum(corrected.values()) // len(corrected) / target
    return _Proposal(_replicas(current, groups, ratio, new_ratio, corrected, tolerance), average)


def _usable(
    pods: list[Object], metrics: dict[str, int], resource: str, now: float
) -> tuple[_Groups, dict[str, int]]:
    """Groups of the pods, and metrics of the pods that count."""
    if not pods:
        raise _MetricError(_NO_PODS)
    groups = group_pods(pods, metrics, resource, now)
    unused = groups.ignored | groups.unready
    metrics = {pod: usage for pod, usage in metrics.items() if pod not in unused}
    if not metrics:
        raise _MetricError(_NO_METRICS)
    return groups, metrics


def _corrected(
    groups: _Groups, metrics: dict[str, int], ratio: float, fallback: dict[str, int]
) -> dict[str, int] | None:
    """Metrics with cautious values for pods without metrics and unready pods. None if there are no such pods.

    If the usage is low, missing pods use `fallback`. If it is high, missing and unready pods use nothing.
    """
    raised = bool(groups.unready) and ratio > 1.0
    if not raised and not groups.missing:
        return None
    corrected = dict(metrics)
    if ratio < 1.0:
        corrected |= fallback
    elif ratio > 1.0:
        corrected |= dict.fromkeys(groups.missing, 0)
    if raised:
        corrected |= dict.fromkeys(groups.unready, 0)
    return corrected


def _replicas(
    current: int,
    groups: _Groups,
    ratio: float,
    new_ratio: float,
    corrected: dict[str, int] | None,
    tolerance: Tolerance,
) -> int:
    if corrected is None:
        return current if tolerance.covers(ratio) else math.ceil(ratio * groups.ready)
    turned = (ratio < 1.0 < new_ratio) or (new_ratio < 1.0 < ratio)
    if tolerance.covers(new_ratio) or turned:
        return current
    replicas = math.ceil(new_ratio * len(corrected))
    if (new_ratio < 1.0 and replicas > current) or (new_ratio > 1.0 and replicas < current):
        return current
    return replicas


NO_CUSTOM = "unable to fetch metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered"
NO_EXTERNAL = (
    "unable to fetch metrics from external metrics API: the server could not find the requested resource"
)
MICRO = 10**6
"""Billionths in a thousandth."""


class Target(NamedTuple):
    """Pods of an autoscaler's target."""

    replicas: int
    pods: list[Object]
    usages: dict[str, dict[str, Usage]]
    """By the name of the pod and of the container. Pods without a running container are absent."""
    tolerance: Tolerance
    namespace: str
    now: float


class Computed(NamedTuple):
    replicas: int
    name: str
    """Metric in conditions and Events."""
    status: Object


class FailedMetric(Exception):
    """Metric without a result: reason and message of the condition, and the error of the whole computation."""

    def __init__(self, reason: str, message: str, error: str) -> None:
        super().__init__(error)
        self.reason = reason
        self.message = message


def compute(metric: Object, target: Target) -> Computed:
    """Replicas that one metric requires."""
    kind = metric["type"]
    if kind == "Resource":
        return _resource(metric["resource"], "", target, kind)
    if kind == "ContainerResource":
        return _resource(metric["containerResource"], metric["containerResource"]["container"], target, kind)
    if kind == "Pods":
        why = f"unable to get metric {metric['pods']['metric']['name']}: {NO_CUSTOM}"
        raise FailedMetric("FailedGetPodsMetric", why, f"failed to get pods metric value: {why}")
    if kind == "Object":
        raise _no_object_metric(metric["object"], target.namespace)
    if kind == "External":
        raise _no_external_metric(metric["external"], target.namespace)
    why = f'unknown metric source type "{kind}"'
    raise FailedMetric("InvalidMetricSourceType", why, why)


def _resource(source: Object, container: str, target: Target, kind: str) -> Computed:
    resource, metric_target = source["name"], source["target"]
    try:
        proposal = _propose(resource, container, metric_target, target)
    except _MetricError as error:
        unit = "usage" if "averageValue" in metric_target else "utilization"
        why = f"failed to get {resource} {unit}: {error}"
        what = f"{container} container" if container else f"{resource} resource"
        raise FailedMetric(
            f"FailedGet{kind}Metric", why, f"failed to get {what} metric value: {why}"
        ) from None
    format = BINARY_SI if resource == "memory" else DECIMAL_SI
    current: Object = {"averageValue": str(Quantity(proposal.average * MICRO, format))}
    name = f"{resource} resource"
    if proposal.utilization is not None:
        current["averageUtilization"] = proposal.utilization
        scope = "container resource" if container else "resource"
        name = f"{resource} {scope} utilization (percentage of request)"
    part = {"name": resource, "current": current} | ({"container": container} if container else {})
    return Computed(proposal.replicas, name, {"type": kind, kind[0].lower() + kind[1:]: part})


def _propose(resource: str, container: str, metric_target: Object, target: Target) -> _Proposal:
    metrics = _measured(target.usages, resource, container)
    if "averageValue" in metric_target:
        value = parse_quantity(metric_target["averageValue"]).milli_value()
        rest = (target.pods, metrics, resource, target.tolerance, target.now)
        return _for_average(target.replicas, value, *rest)
    percent = metric_target["averageUtilization"]
    return _for_utilization(
        target.replicas, percent, target.pods, metrics, resource, container, target.tolerance, target.now
    )


def _no_object_metric(source: Object, namespace: str) -> FailedMetric:
    described, name = source["describedObject"], source["metric"]["name"]
    # The reference fills its message in this order.
    why = f"unable to get metric {name}: {described['kind']} on {namespace} {described['name']}/{NO_CUSTOM}"
    error = why if source["target"]["type"] == "Value" else f"failed to get {name} object metric: {why}"
    return FailedMetric("FailedGetObjectMetric", why, f"failed to get object metric value: {error}")


def _no_external_metric(source: Object, namespace: str) -> FailedMetric:
    name = source["metric"]["name"]
    selector = go_label_selector(source["metric"].get("selector"))
    missing = f"{NO_EXTERNAL} (get {name}.external.metrics.k8s.io)"
    why = f"unable to get external metric {namespace}/{name}/{selector}: {missing}"
    if "averageValue" in source["target"]:
        error = f"failed to get {name} external metric: {why}"
    else:
        error = f"failed to get external metric {name}: {why}"
    return FailedMetric(
        "FailedGetExternalMetric", why, f"failed to get {name} external metric value: {error}"
    )
