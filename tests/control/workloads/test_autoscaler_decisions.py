"""Replicas, limits and errors of a HorizontalPodAutoscaler for given pods and times."""

from __future__ import annotations

from typing import Any

import pytest

from kubist.cluster.control.usage import usage_of
from kubist.cluster.control.workloads.horizontalpodautoscaler import History, Limited, limit
from kubist.cluster.control.workloads.horizontalpodautoscaler_metrics import (
    Computed,
    FailedMetric,
    Target,
    Tolerance,
    compute,
    group_pods,
)
from kubist.model.meta.object import Object
from kubist.model.meta.times import format_time

NOW = 1_800_000_000
DEFAULT = Tolerance()


def pod(
    name: str,
    usage: str | None = "100m",
    *,
    phase: str = "Running",
    ready: bool = True,
    started: int = -1000,
    changed: int = -900,
    request: str | None = "100m",
    **metadata: Any,
) -> Object:
    """Pod with one container. `started` and `changed` (of Ready) are seconds from NOW; no usage means no metrics."""
    requests = {"cpu": request} if request else {}
    state: Object = {"running": {}} if usage is not None else {"waiting": {}}
    return {
        "metadata": {"name": name, "annotations": {"kubist.io/usage": f"cpu={usage},memory=1Mi"}, **metadata},
        "spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]},
        "status": {
            "phase": phase,
            "startTime": format_time(NOW + started),
            "containerStatuses": [{"name": "c", "state": state}],
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True" if ready else "False",
                    "lastTransitionTime": format_time(NOW + changed),
                }
            ],
        },
    }


def target(*pods: Object, replicas: int = 0, tolerance: Tolerance = DEFAULT) -> Target:
    usages = {one["metadata"]["name"]: found for one in pods if (found := usage_of(one))}
    return Target(replicas or len(pods), list(pods), usages, tolerance, "default", NOW)


def cpu(percent: int) -> Object:
    return {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": percent}},
    }


def cpu_value(value: str) -> Object:
    return {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "AverageValue", "averageValue": value}},
    }


def pods(*usages: str, **parts: Any) -> list[Object]:
    return [pod(f"p{number}", usage, **parts) for number, usage in enumerate(usages)]


# Replicas


@pytest.mark.parametrize(
    ("usages", "percent", "replicas", "utilization"),
    [
        (["100m", "100m"], 50, 4, 100),
        (["50m", "50m"], 50, 2, 50),
        (["54m", "54m"], 50, 2, 54),
        (["56m", "56m"], 50, 3, 56),
        (["46m", "46m"], 50, 2, 46),
        (["20m", "20m"], 50, 1, 20),
        (["0", "0"], 50, 0, 0),
        (["300m", "0"], 50, 6, 150),
    ],
)
def test_utilization_sets_the_replicas(
    usages: list[str], percent: int, replicas: int, utilization: int
) -> None:
    found = compute(cpu(percent), target(*pods(*usages)))
    assert found.replicas == replicas
    assert found.name == "cpu resource utilization (percentage of request)"
    assert found.status["resource"]["current"]["averageUtilization"] == utilization


def test_average_value_needs_no_requests() -> None:
    found = compute(cpu_value("60m"), target(*pods("90m", "90m", request=None)))
    status = {"type": "Resource", "resource": {"name": "cpu", "current": {"averageValue": "90m"}}}
    assert found == Computed(3, "cpu resource", status)


def test_memory_is_shown_with_binary_suffixes() -> None:
    metric = {
        "type": "Resource",
        "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "512Ki"}},
    }
    found = compute(metric, target(*pods("1m", "1m")))
    assert (found.replicas, found.status["resource"]["current"]) == (4, {"averageValue": "1Mi"})


def test_container_metric_looks_at_one_container() -> None:
    held = pod("p", "10m")
    held["spec"]["containers"].append({"name": "other", "resources": {"requests": {"cpu": "100m"}}})
    held["status"]["containerStatuses"].append({"name": "other", "state": {"running": {}}})
    held["metadata"]["annotations"]["kubist.io/usage.other"] = "cpu=200m"
    source = {
        "name": "cpu",
        "container": "other",
        "target": {"type": "Utilization", "averageUtilization": 50},
    }
    found = compute({"type": "ContainerResource", "containerResource": source}, target(held))
    assert found.replicas == 4
    assert found.name == "cpu container resource utilization (percentage of request)"
    assert found.status == {
        "type": "ContainerResource",
        "containerResource": {
            "name": "cpu",
            "container": "other",
            "current": {"averageValue": "200m", "averageUtilization": 200},
        },
    }


def test_tolerance_differs_by_direction() -> None:
    held = target(*pods("65m", "65m"), tolerance=Tolerance(down=0.0, up=0.5))
    assert compute(cpu(50), held).replicas == 2
    assert compute(cpu(66), held).replicas == 2
    assert compute(cpu(150), held).replicas == 1


def test_pod_level_requests_win() -> None:
    held = pod("p", "100m")
    held["spec"]["resources"] = {"requests": {"cpu": "400m"}}
    assert compute(cpu(50), target(held)).status["resource"]["current"]["averageUtilization"] == 25


# Missing metrics and unready pods


def test_missing_pods_dampen_both_directions() -> None:
    missing = pod("m", None)
    assert compute(cpu(50), target(*pods("150m", "150m"), missing)).replicas == 6
    assert compute(cpu(50), target(*pods("60m", "60m"), missing)).replicas == 3
    assert compute(cpu(50), target(*pods("10m", "10m"), missing)).replicas == 3
    assert compute(cpu_value("100m"), target(*pods("10m", "10m", "10m"), missing)).replicas == 2


def test_unready_pods_do_not_raise_the_replicas() -> None:
    starting = pod("s", "500m", ready=False, started=-60, changed=-60)
    assert compute(cpu(50), target(*pods("100m"), starting)).replicas == 2
    assert compute(cpu(50), target(*pods("200m"), starting)).replicas == 4
    assert compute(cpu(50), target(*pods("20m"), starting)).replicas == 1


@pytest.mark.parametrize(
    ("held", "group"),
    [
        (pod("p"), "ready"),
        (pod("p", deletionTimestamp="x"), "ignored"),
        (pod("p", phase="Failed"), "ignored"),
        (pod("p", phase="Pending"), "unready"),
        (pod("p", None), "missing"),
        (pod("p", started=-60, ready=False), "unready"),
        (pod("p", started=-60, ready=True, changed=-50), "ready"),
        (pod("p", started=-1000, ready=False, changed=-990), "unready"),
        (pod("p", started=-1000, ready=False, changed=-900), "ready"),
    ],
)
def test_pods_are_grouped_by_their_state(held: Object, group: str) -> None:
    metrics = dict.fromkeys(target(held).usages, 1)
    groups = group_pods([held], metrics, "cpu", NOW)
    found = {"ready": groups.ready, "ignored": len(groups.ignored), "unready": len(groups.unready)}
    assert found | {"missing": len(groups.missing)} == {
        "ready": 0,
        "ignored": 0,
        "unready": 0,
        "missing": 0,
        group: 1,
    }


# Errors


@pytest.mark.parametrize(
    ("metric", "found", "reason", "message"),
    [
        (
            cpu(50),
            [],
            "FailedGetResourceMetric",
            "failed to get cpu utilization: unable to get metrics for resource cpu: "
            "no metrics returned from resource metrics API",
        ),
        (
            cpu_value("1"),
            [pod("p", phase="Pending")],
            "FailedGetResourceMetric",
            "failed to get cpu usage: did not receive metrics for targeted pods (pods might be unready)",
        ),
        (
            cpu(50),
            [pod("p", request=None)],
            "FailedGetResourceMetric",
            "failed to get cpu utilization: missing request for cpu in container c of Pod p",
        ),
        (
            {"type": "Pods", "pods": {"metric": {"name": "qps"}, "target": {"averageValue": "1"}}},
            [pod("p")],
            "FailedGetPodsMetric",
            "unable to get metric qps: unable to fetch metrics from custom metrics API: "
            "no custom metrics API (custom.metrics.k8s.io) registered",
        ),
        (
            {
                "type": "Object",
                "object": {
                    "metric": {"name": "qps"},
                    "describedObject": {"kind": "Service", "name": "web"},
                    "target": {"type": "Value", "value": "1"},
                },
            },
            [pod("p")],
            "FailedGetObjectMetric",
            "unable to get metric qps: Service on default web/unable to fetch metrics from custom metrics API: "
            "no custom metrics API (custom.metrics.k8s.io) registered",
        ),
        (
            {"type": "External", "external": {"metric": {"name": "queue"}, "target": {"averageValue": "1"}}},
            [pod("p")],
            "FailedGetExternalMetric",
            "unable to get external metric default/queue/nil: unable to fetch metrics from external metrics API: "
            "the server could not find the requested resource (get queue.external.metrics.k8s.io)",
        ),
    ],
)
def test_failed_metric_has_the_words_of_the_reference(
    metric: Object, found: list[Object], reason: str, message: str
) -> None:
    with pytest.raises(FailedMetric) as caught:
        compute(metric, target(*found, replicas=1))
    assert (caught.value.reason, caught.value.message) == (reason, message)
    assert message in str(caught.value)


# Limits


def limited(
    current: int, desired: int, history: History | None = None, at: float = 0, **spec: Any
) -> Limited:
    spec = {"minReplicas": 1, "maxReplicas": 100, **spec}
    return limit(spec, history if history is not None else History(), current, desired, NOW + at)


@pytest.mark.parametrize(
    ("current", "desired", "replicas", "reason", "is_limited"),
    [
        (3, 5, 5, "DesiredWithinRange", False),
        (3, 50, 6, "ScaleUpLimit", True),
        (1, 50, 4, "ScaleUpLimit", True),
        (60, 200, 100, "TooManyReplicas", True),
        (3, 0, 1, "TooFewReplicas", True),
    ],
)
def test_default_limits(current: int, desired: int, replicas: int, reason: str, is_limited: bool) -> None:
    found = limited(current, desired)
    assert (found.replicas, found.scaling_limited[0], found.is_limited) == (replicas, reason, is_limited)


def test_scaling_down_waits_for_the_highest_recent_recommendation() -> None:
    history = History([(NOW, 8)])
    found = limited(8, 2, history, at=10)
    assert (found.replicas, found.able_to_scale[0]) == (8, "ScaleDownStabilized")
    assert limited(8, 5, history, at=200).replicas == 8
    found = limited(8, 2, history, at=301)
    assert (found.replicas, found.able_to_scale[0]) == (5, "ScaleDownStabilized")
    found = limited(5, 2, history, at=501)
    assert (found.replicas, found.able_to_scale[0]) == (2, "ReadyForNewScale")


def behavior(up: Object | None = None, down: Object | None = None) -> Object:
    policies = [{"type": "Percent", "value": 100, "periodSeconds": 15}]
    defaults = {"selectPolicy": "Max", "policies": policies, "stabilizationWindowSeconds": 0}
    return {"behavior": {"scaleUp": defaults | (up or {}), "scaleDown": defaults | (down or {})}}


def policies(*values: tuple[str, int], select: str = "Max") -> Object:
    listed = [{"type": kind, "value": value, "periodSeconds": 60} for kind, value in values]
    return {"policies": listed, "selectPolicy": select}


@pytest.mark.parametrize(
    ("rules", "current", "desired", "replicas", "reason"),
    [
        ({"up": policies(("Pods", 4))}, 10, 50, 14, "ScaleUpLimit"),
        ({"up": policies(("Pods", 4), ("Percent", 100))}, 10, 50, 20, "ScaleUpLimit"),
        ({"up": policies(("Pods", 4), ("Percent", 100), select="Min")}, 10, 50, 14, "ScaleUpLimit"),
        ({"up": policies(("Percent", 15))}, 10, 50, 12, "ScaleUpLimit"),
        ({"up": policies(("Pods", 4), select="Disabled")}, 10, 50, 10, "ScaleUpLimit"),
        ({"up": policies(("Pods", 400))}, 10, 500, 100, "TooManyReplicas"),
        ({"up": policies(("Pods", 4))}, 10, 12, 12, "DesiredWithinRange"),
        ({"down": policies(("Pods", 4))}, 10, 1, 6, "ScaleDownLimit"),
        ({"down": policies(("Pods", 4), ("Percent", 50))}, 10, 1, 5, "ScaleDownLimit"),
        ({"down": policies(("Pods", 4), ("Percent", 50), select="Min")}, 10, 1, 6, "ScaleDownLimit"),
        ({"down": policies(("Pods", 4), select="Disabled")}, 10, 1, 10, "ScaleDownLimit"),
        ({"down": policies(("Percent", 100))}, 10, 0, 1, "TooFewReplicas"),
    ],
)
def test_policies_limit_the_rate(
    rules: dict[str, Object], current: int, desired: int, replicas: int, reason: str
) -> None:
    found = limited(current, desired, **behavior(**rules))
    assert (found.replicas, found.scaling_limited[0]) == (replicas, reason)


def test_rate_counts_the_changes_of_its_period() -> None:
    history = History()
    rules = behavior(up=policies(("Pods", 4)))
    history.add_change(10, 13, NOW)
    assert limited(13, 50, history, at=30, **rules).replicas == 14
    assert limited(13, 50, history, at=61, **rules).replicas == 17


def test_window_for_scaling_up_uses_the_lowest_recommendation() -> None:
    history = History([(NOW, 3)])
    rules = behavior(up={"stabilizationWindowSeconds": 60, "policies": policies(("Pods", 90))["policies"]})
    found = limited(3, 9, history, at=30, **rules)
    assert (found.replicas, found.able_to_scale[0]) == (3, "ScaleUpStabilized")
    assert limited(3, 8, history, at=61, **rules).replicas == 8


def test_window_for_scaling_down_is_300_seconds_by_default() -> None:
    rules = behavior()
    del rules["behavior"]["scaleDown"]["stabilizationWindowSeconds"]
    history = History([(NOW, 8)])
    assert limited(8, 2, history, at=299, **rules).replicas == 8
    assert limited(8, 2, history, at=300, **rules).replicas == 2


def test_history_stays_bounded() -> None:
    history = History()
    for second in range(0, 10_000, 15):
        limited(3, 3, history, at=second)
    assert len(history.recommendations) <= 3600 // 15 + 1
