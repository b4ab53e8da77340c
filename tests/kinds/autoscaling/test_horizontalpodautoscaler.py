"""HorizontalPodAutoscaler: validation in v2, and conversion to v1 and back."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from kubist.api.kinds.autoscaling.v1conversion import from_v1, to_v1
from kubist.model.meta.object import Object

METRICS = "autoscaling.alpha.kubernetes.io/metrics"


@pytest.fixture
def autoscalers(kind_of: Any) -> Any:
    return kind_of("autoscaling/v2", "HorizontalPodAutoscaler")


def autoscaler(**spec: Any) -> Object:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return {"metadata": {"name": "x"}, "spec": {"maxReplicas": 3, "scaleTargetRef": target, **spec}}


def metric(source: str, **fields: Any) -> Object:
    return {"type": source[0].upper() + source[1:], source: fields}


CPU = metric("resource", name="cpu", target={"type": "Utilization", "averageUtilization": 70})
ALL_METRICS = [
    metric("resource", name="memory", target={"type": "AverageValue", "averageValue": "1Gi"}),
    metric("pods", metric={"name": "hits"}, target={"type": "AverageValue", "averageValue": "2500m"}),
    metric(
        "object",
        describedObject={"kind": "Service", "name": "q", "apiVersion": "v1"},
        metric={"name": "queue", "selector": {"matchLabels": {"a": "b"}}},
        target={"type": "Value", "value": "10k"},
    ),
    metric(
        "containerResource",
        name="cpu",
        container="app",
        target={"type": "Utilization", "averageUtilization": 5},
    ),
    metric("external", metric={"name": "e"}, target={"type": "AverageValue", "averageValue": "30"}),
    CPU,
]

REFUSED: list[tuple[Object, list[tuple[str, str]]]] = [
    ({"maxReplicas": 0}, [("maxReplicas", "Required"), ("maxReplicas", "Invalid")]),
    ({"minReplicas": 0}, [("minReplicas", "Invalid"), ("metrics", "Forbidden")]),
    ({"minReplicas": 4}, [("maxReplicas", "Invalid")]),
    (
        {"scaleTargetRef": {"kind": "Deployment", "name": "x"}},
        [("scaleTargetRef.apiVersion", "Invalid")],
    ),
    ({"scaleTargetRef": {"kind": "ReplicationController", "name": "x"}}, []),
    (
        {"metrics": [{"type": "Guess"}]},
        [("metrics[0].type", "NotSupported"), ("metrics[0].type", "NotSupported")],
    ),
    ({"metrics": [{"type": "Pods"}]}, [("metrics[0].pods", "Required")]),
    ({"metrics": [CPU | {"type": "Pods"}]}, [("metrics[0].pods", "Required")]),
    (
        {"metrics": [metric("pods", metric={"name": "a/b"}, target={"type": "Value", "value": "0"})]},
        [
            ("metrics[0].pods.metric.name", "Invalid"),
            ("metrics[0].pods.target.value", "Invalid"),
            ("metrics[0].pods.target.averageValue", "Required"),
        ],
    ),
    (
        {"behavior": {"scaleUp": {"stabilizationWindowSeconds": 3601, "selectPolicy": "Any"}}},
        [
            ("behavior.scaleUp.stabilizationWindowSeconds", "Invalid"),
            ("behavior.scaleUp.selectPolicy", "NotSupported"),
        ],
    ),
    (
        {"behavior": {"scaleDown": {"policies": [{"type": "Pods", "value": 0, "periodSeconds": 1801}]}}},
        [
            ("behavior.scaleDown.policies[0].value", "Invalid"),
            ("behavior.scaleDown.policies[0].periodSeconds", "Invalid"),
        ],
    ),
]


@pytest.mark.parametrize(("spec", "causes"), REFUSED)
def test_invalid_spec_is_rejected(autoscalers: Any, spec: Object, causes: list[tuple[str, str]]) -> None:
    assert autoscalers.create_errors(autoscaler(**spec)) == [
        (f"spec.{field}", reason) for field, reason in causes
    ]


def test_cpu_is_the_default_metric(autoscalers: Any) -> None:
    metrics = autoscalers.stored(autoscaler())["spec"]["metrics"]
    assert [m["resource"]["target"]["averageUtilization"] for m in metrics] == [80]


def test_given_behavior_gets_defaults(autoscalers: Any) -> None:
    behavior = autoscalers.stored(autoscaler(behavior={"scaleUp": {"selectPolicy": "Min"}}))["spec"][
        "behavior"
    ]
    assert behavior["scaleUp"]["selectPolicy"] == "Min" and len(behavior["scaleUp"]["policies"]) == 2
    assert "stabilizationWindowSeconds" not in behavior["scaleDown"]
    assert "behavior" not in autoscalers.stored(autoscaler())["spec"]


def test_metrics_round_trip_through_v1_with_cpu_last(autoscalers: Any) -> None:
    old = autoscalers.stored(autoscaler(metrics=[CPU, *ALL_METRICS[:-1]], behavior={}))
    shown = to_v1(copy.deepcopy(old))
    assert shown["spec"]["targetCPUUtilizationPercentage"] == 70
    assert len(json.loads(shown["metadata"]["annotations"][METRICS])) == 5
    back = from_v1(shown)
    assert back["spec"].pop("metrics") == ALL_METRICS
    assert back["spec"] == {name: value for name, value in old["spec"].items() if name != "metrics"}
    assert "annotations" not in back["metadata"]


def test_invalid_v1_annotations_are_ignored(kind_of: Any) -> None:
    autoscalers = kind_of("autoscaling/v1", "HorizontalPodAutoscaler")
    for text in ("not json", "{}", '[{"type": 3}]', '[{"type":"Pods","pods":{"targetAverageValue":"lots"}}]'):
        given = autoscaler(targetCPUUtilizationPercentage=70)
        given["metadata"]["annotations"] = {METRICS: text}
        new = autoscalers.strategy.convert(autoscalers.decode(given), "autoscaling/v2")
        assert new["spec"]["metrics"] == [CPU]
        assert "annotations" not in new["metadata"]


def test_v1_annotations_are_dropped_in_v2(autoscalers: Any) -> None:
    given = autoscaler()
    given["metadata"]["annotations"] = {METRICS: "[]", "mine": "kept"}
    assert autoscalers.stored(given)["metadata"]["annotations"] == {"mine": "kept"}
