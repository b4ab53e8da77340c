"""A parsed Stage: what it selects, its weight and delay, and errors that name the field."""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubist.cluster.simulation.stages.expressions import Subject
from kubist.cluster.simulation.stages.limits import StageError
from kubist.cluster.simulation.stages.stage import Lifecycle, Stage
from kubist.cluster.simulation.stages.steps import ChangeFinalizers, Patch
from kubist.model.cel import regex
from tests.simulation.stages.making import needs, stage

NOW = 1704067200.0
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "web",
        "namespace": "default",
        "labels": {"app": "web", "tier": "front"},
        "annotations": {"example/delay": "3s", "example/weight": "7", "example/empty": ""},
        "creationTimestamp": "2023-12-31T23:59:00Z",
        "deletionTimestamp": "2024-01-01T00:00:10Z",
        "generation": 2,
    },
    "spec": {"containers": [{"name": "c"}]},
    "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
}


def subject(obj: dict[str, Any] = POD, seed: int = 1) -> Subject:
    return Subject(obj, NOW, Random(seed))


def matches(selector: dict[str, Any] | None) -> bool:
    return Stage(stage("s", selector=selector)).matches(subject())


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ({}, True),
        (None, False),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "web", "tier": "back"}}, False),
        ({"matchAnnotations": {"example/delay": "3s"}}, True),
        ({"matchAnnotations": {"example/delay": "4s"}}, False),
        (
            {"matchLabels": {"app": "web"}, "matchExpressions": [needs(".status.phase", "In", "Pending")]},
            False,
        ),
        ({"matchExpressions": [needs(".status.phase", "In", "Pending", "Running")]}, True),
        ({"matchExpressions": [needs(".status.phase", "NotIn", "Pending")]}, True),
        ({"matchExpressions": [needs(".status.missing", "NotIn", "a")]}, True),
        ({"matchExpressions": [needs(".status.phase", "Exists")]}, True),
        ({"matchExpressions": [needs(".metadata.finalizers", "DoesNotExist")]}, True),
        ({"matchExpressions": [needs(".metadata.generation", "In", "2")]}, True),
        ({"matchExpressions": [needs(".spec.containers.[].name", "In", "c")]}, True),
        ({"matchExpressions": [needs(".status.phase.impossible", "DoesNotExist")]}, True),
        ({"matchExpressions": [needs('.metadata.labels["app"]', "Exists"), needs(".x", "Exists")]}, False),
        ({"matchExpressions": [{"jq": needs(".status.phase", "In", "Running")}]}, True),
        ({"matchExpressions": [{"cel": {"expression": "self.status.phase == 'Running'"}}]}, True),
        ({"matchExpressions": [{"cel": {"expression": "has(self.metadata.finalizers)"}}]}, False),
        ({"matchExpressions": [{"cel": {"expression": "self.status.missing == 'a'"}}]}, False),
        ({"matchExpressions": [{"cel": {"expression": "self.status.phase"}}]}, False),
        (
            {
                "matchExpressions": [
                    {"cel": {"expression": "self.SinceSecond() == 60.0 && SinceSecond(self) > 1.0"}}
                ]
            },
            True,
        ),
        (
            {
                "matchExpressions": [
                    {"cel": {"expression": "Now() - self.metadata.creationTimestamp == duration('60s')"}}
                ]
            },
            True,
        ),
        (
            {
                "matchExpressions": [
                    {"cel": {"expression": "Now().UnixSecond() == 1704067200.0 && Rand() < 1.0"}}
                ]
            },
            True,
        ),
        (
            {"matchExpressions": [{"cel": {"expression": "Quantity('1Gi').isGreaterThan(Quantity('1M'))"}}]},
            True,
        ),
    ],
)
def test_selector(selector: dict[str, Any] | None, selected: bool) -> None:
    assert matches(selector) is selected


def test_condition_with_a_forgotten_pattern() -> None:
    """A pattern that is no longer cached is compiled again, also on the event loop."""
    expression = {"cel": {"expression": "self.metadata.name.matches('^[a-z]{1,63}$')"}}
    made = Stage(stage("s", selector={"matchExpressions": [expression]}))

    async def evaluate() -> bool:
        regex._compiled.clear()
        return made.matches(subject())

    assert asyncio.run(evaluate())


@pytest.mark.parametrize(
    ("delay", "least", "most"),
    [
        (None, 0, 0),
        ({}, 0, 0),
        ({"durationMilliseconds": 1500}, 1.5, 1.5),
        ({"durationMilliseconds": 1000, "jitterDurationMilliseconds": 5000}, 1, 5),
        ({"durationMilliseconds": 5000, "jitterDurationMilliseconds": 1000}, 1, 1),
        (
            {
                "durationMilliseconds": 1,
                "durationFrom": {"expressionFrom": '.metadata.annotations["example/delay"]'},
            },
            3,
            3,
        ),
        (
            {
                "durationMilliseconds": 7000,
                "durationFrom": {"expressionFrom": ".metadata.annotations.missing"},
            },
            7,
            7,
        ),
        ({"durationMilliseconds": 7000, "durationFrom": {"jq": {"expression": ".metadata.name"}}}, 7, 7),
        (
            {
                "durationMilliseconds": 7000,
                "durationFrom": {"expressionFrom": '.metadata.annotations["example/empty"]'},
            },
            0,
            0,
        ),
        ({"durationFrom": {"expressionFrom": ".metadata.deletionTimestamp"}}, 10, 10),
        ({"durationFrom": {"expressionFrom": ".metadata.creationTimestamp"}}, 0, 0),
        (
            {
                "durationMilliseconds": 1000,
                "jitterDurationFrom": {"expressionFrom": ".metadata.deletionTimestamp"},
            },
            1,
            10,
        ),
        ({"durationFrom": {"cel": {"expression": "duration('2s')"}}}, 2, 2),
        (
            {
                "durationFrom": {"cel": {"expression": "'4s'"}},
                "jitterDurationFrom": {"cel": {"expression": "3000000000"}},
            },
            3,
            3,
        ),
    ],
)
def test_delay(delay: dict[str, Any] | None, least: float, most: float) -> None:
    made = Stage(stage("s", delay=delay))
    delays = [made.delay(subject(seed=seed)) for seed in range(20)]
    assert all(least <= found <= most for found in delays)
    assert least == most or len(set(delays)) > 1


def test_failed_cel_delay_is_an_error() -> None:
    made = Stage(stage("s", delay={"durationFrom": {"cel": {"expression": "self.missing"}}}))
    with pytest.raises(StageError, match="no such key"):
        made.delay(subject())


@pytest.mark.parametrize(
    ("spec", "weight"),
    [
        ({}, 0),
        ({"weight": 4}, 4),
        ({"weight": 4, "weightFrom": {"expressionFrom": '.metadata.annotations["example/weight"]'}}, 7),
        ({"weight": 4, "weightFrom": {"expressionFrom": ".metadata.annotations.missing"}}, 4),
        ({"weight": 4, "weightFrom": {"expressionFrom": '.metadata.annotations["example/delay"]'}}, None),
        ({"weightFrom": {"jq": {"expression": ".metadata.generation"}}}, 2),
        ({"weightFrom": {"cel": {"expression": "size(self.spec.containers)"}}}, 1),
    ],
)
def test_weight(spec: dict[str, Any], weight: int | None) -> None:
    assert Stage(stage("s", **spec)).weight(subject()) == weight


def chosen(weights: dict[str, Any]) -> Counter[str]:
    """How often each Stage comes next, by seed."""
    bad = {"weightFrom": {"expressionFrom": ".metadata.name"}}
    lifecycle = Lifecycle(
        Stage(stage(name, **({"weight": weight} if weight is not None else bad)))
        for name, weight in weights.items()
    )
    found = [lifecycle.next(subject(seed=seed)) for seed in range(200)]
    return Counter(made.name for made in found if made is not None)


def test_stage_is_chosen_by_weight() -> None:
    counts = chosen({"often": 9, "seldom": 1, "never": 0})
    assert counts["often"] > counts["seldom"] > 0
    assert counts["never"] == 0


def test_stages_without_weights_are_equal() -> None:
    assert set(chosen({"a": 0, "b": 0})) == {"a", "b"}


def test_stages_whose_weight_is_no_number_come_last() -> None:
    assert set(chosen({"bad": None, "zero": 0})) == {"zero"}
    assert set(chosen({"bad": None, "worse": None})) == {"bad", "worse"}


def test_same_seed_makes_the_same_choice() -> None:
    assert chosen({"a": 1, "b": 1}) == chosen({"a": 1, "b": 1})


def test_no_stage_for_an_object_that_none_selects() -> None:
    assert Lifecycle([Stage(stage("s", selector={"matchLabels": {"app": "other"}}))]).next(subject()) is None


def test_finalizers_are_added_removed_and_emptied() -> None:
    def changed(
        *held: str, add: tuple[str, ...] = (), remove: tuple[str, ...] = (), empty: bool = False
    ) -> list[str]:
        listed = {"add": [{"value": name} for name in add], "remove": [{"value": name} for name in remove]}
        made = Stage(stage("s", next={"finalizers": {**listed, "empty": empty}}))
        (step,) = made.steps
        assert isinstance(step, ChangeFinalizers)
        return step.changed(list(held))

    assert changed("a", add=("a", "b")) == ["a", "b"]
    assert changed("a", "b", remove=("a", "c")) == ["b"]
    assert changed("a", "b", empty=True) == []
    assert changed("a", empty=True, add=("z",)) == ["z"]


def document(**patch: Any) -> Any:
    (step,) = Stage(stage("s", "ConfigMap", next={"patches": [patch]})).steps
    assert isinstance(step, Patch)
    return step.document(POD, {})


def test_root_wraps_the_patch() -> None:
    assert document(template="a: {{ .metadata.name }}") == {"a": "web"}
    assert document(root="data", template="a: {{ .metadata.name }}") == {"data": {"a": "web"}}
    operations = "- {op: add, path: /a, value: b}"
    assert document(root="data", type="json", template=operations) == [
        {"op": "add", "path": "/data/a", "value": "b"}
    ]


def test_malformed_output_of_a_template_is_one_line() -> None:
    with pytest.raises(StageError, match="malformed YAML") as caught:
        document(template="a: [")
    assert "\n" not in str(caught.value)
    with pytest.raises(StageError, match="list of operations"):
        document(type="json", root="data", template="a: 1")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"resourceRef": {}}, "spec.resourceRef.kind: required"),
        ({"resourceRef": None}, "spec.resourceRef: required"),
        ({"surprise": 1}, "spec.surprise: unknown field"),
        ({"next": {"statusTemplates": "a"}}, "spec.next.statusTemplates: unknown field"),
        ({"weight": -1}, "spec.weight: must be an integer, 0 or more"),
        (
            {"delay": {"durationMilliseconds": "1s"}},
            "spec.delay.durationMilliseconds: must be an integer, 0 or more",
        ),
        ({"selector": {"matchLabels": {"a": 1}}}, "spec.selector.matchLabels: must be a map of strings"),
        (
            {"selector": {"matchExpressions": [needs(".a", "Like", "b")]}},
            "spec.selector.matchExpressions[0].key: unknown operator 'Like': use In, NotIn, Exists or DoesNotExist",
        ),
        (
            {"selector": {"matchExpressions": [needs(".a", "In")]}},
            "spec.selector.matchExpressions[0].key: the operator In needs values",
        ),
        (
            {"selector": {"matchExpressions": [needs("reduce .a", "Exists")]}},
            "spec.selector.matchExpressions[0].key: jq expression 'reduce .a': 'reduce .a' is not supported: run kwok "
            "itself against this server for Stages that use it",
        ),
        ({"selector": {"matchExpressions": [{}]}}, "spec.selector.matchExpressions[0].key: required"),
        (
            {"next": {"statusTemplate": "\n{{ nonsense }}"}},
            "spec.next.statusTemplate: template: line 1: the function 'nonsense' is not supported: run kwok itself "
            "against this server for Stages that use it",
        ),
        (
            {"next": {"patches": [{"type": "apply", "template": ""}]}},
            "spec.next.patches[0].type: unknown value 'apply': use json, merge, strategic",
        ),
        (
            {"steps": [{"patch": {"template": "{{ if }}"}}]},
            "spec.steps[0].patch.template: template: line 1: a value is missing",
        ),
        ({"immediateNextStage": "yes"}, "spec.immediateNextStage: must be true or false"),
    ],
)
def test_error_names_the_field(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(StageError) as caught:
        Stage(stage("s", **spec))
    assert str(caught.value) == message


def test_cel_error_names_the_field() -> None:
    with pytest.raises(
        StageError, match=r"^spec\.weightFrom\.cel\.expression: CEL expression 'self \+': Syntax error: .*"
    ):
        Stage(stage("s", weightFrom={"cel": {"expression": "self +"}}))


def test_address_functions_belong_to_pods_and_nodes() -> None:
    Stage(stage("s", "Node", next={"statusTemplate": "{{ NodeIP }} {{ NodePort }}"}))
    with pytest.raises(StageError, match="'PodIP' is not supported"):
        Stage(stage("s", "Node", next={"statusTemplate": "{{ PodIP }}"}))
    with pytest.raises(StageError, match="'NodeIP' is not supported"):
        Stage(stage("s", "ConfigMap", next={"statusTemplate": "{{ NodeIP }}"}))


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from([".a", "{{ . }}", "self", "In", "merge", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "selector",
                    "matchExpressions",
                    "key",
                    "cel",
                    "jq",
                    "expression",
                    "next",
                    "patches",
                    "template",
                    "delay",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)


@given(_JSON)
def test_no_spec_crashes(spec: Any) -> None:
    made = stage("s")
    made["spec"] = {**made["spec"], **spec} if isinstance(spec, dict) else spec
    problem = ""
    try:
        Stage(made).matches(subject())
    except StageError as error:
        problem = str(error)
    assert "\n" not in problem
