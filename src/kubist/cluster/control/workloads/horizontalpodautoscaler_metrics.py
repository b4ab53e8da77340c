"""Metrics of a HorizontalPodAutoscaler: replicas and status by type. Custom and external metrics are not served."""

from __future__ import annotations

from typing import NamedTuple

from kubist.cluster.control.usage import Usage
from kubist.cluster.control.workloads.horizontalpodautoscaler_replicas import (
    MetricError,
    Proposal,
    Tolerance,
    for_average,
    for_utilization,
    measured,
)
from kubist.model.meta.object import Object
from kubist.model.meta.quantity import BINARY_SI, DECIMAL_SI, Quantity, parse_quantity
from kubist.model.meta.selectors import go_label_selector

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
    """Replicas that one metric asks for."""
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
    resource, wanted = source["name"], source["target"]
    try:
        proposal = _propose(resource, container, wanted, target)
    except MetricError as error:
        unit = "usage" if "averageValue" in wanted else "utilization"
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
        shown = "container resource" if container else "resource"
        name = f"{resource} {shown} utilization (percentage of request)"
    part = {"name": resource, "current": current} | ({"container": container} if container else {})
    return Computed(proposal.replicas, name, {"type": kind, kind[0].lower() + kind[1:]: part})


def _propose(resource: str, container: str, wanted: Object, target: Target) -> Proposal:
    metrics = measured(target.usages, resource, container)
    if "averageValue" in wanted:
        value = parse_quantity(wanted["averageValue"]).milli_value()
        rest = (target.pods, metrics, resource, target.tolerance, target.now)
        return for_average(target.replicas, value, *rest)
    percent = wanted["averageUtilization"]
    return for_utilization(
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
