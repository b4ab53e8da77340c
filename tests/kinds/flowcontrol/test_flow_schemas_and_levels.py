"""FlowSchemas and PriorityLevelConfigurations: validation, defaults, and the mandatory objects."""

from typing import Any

import pytest

from kubist.api import bootstrap
from kubist.api.bootstrap import dangling

V1 = "flowcontrol.apiserver.k8s.io/v1"
Causes = list[tuple[str, str]]
LEVEL = "priorityLevelConfiguration: {name: system}"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (f"{{{LEVEL}}}", []),
        ("{}", [("spec.priorityLevelConfiguration.name", "Required")]),
        (f"{{{LEVEL}, matchingPrecedence: 1}}", [("spec.matchingPrecedence", "Invalid")]),
        (f"{{{LEVEL}, matchingPrecedence: 10001}}", [("spec.matchingPrecedence", "Invalid")]),
        (
            f"{{{LEVEL}, distinguisherMethod: {{type: X}}}}",
            [("spec.distinguisherMethod.type", "NotSupported")],
        ),
        (
            f"{{{LEVEL}, rules: [{{}}]}}",
            [("spec.rules[0].subjects", "Required"), ("spec.rules[0]", "Required")],
        ),
    ],
)
def test_invalid_flow_schema_is_rejected(kind_of: Any, spec: str, expected: Causes) -> None:
    assert kind_of(V1, "FlowSchema").create_errors(f"spec: {spec}") == expected


@pytest.mark.parametrize(
    ("url", "fine"),
    [
        ("/", True),
        ("/a/*", True),
        ("*", True),
        ("", False),
        ("a", False),
        ("/a*", False),
        ("//a", False),
        ("/a b", False),
    ],
)
def test_non_resource_url_validation(kind_of: Any, url: str, fine: bool) -> None:
    rule = {
        "subjects": [{"kind": "User", "user": {"name": "u"}}],
        "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": [url]}],
    }
    spec = {"priorityLevelConfiguration": {"name": "system"}, "rules": [rule]}
    assert (kind_of(V1, "FlowSchema").create_errors({"spec": spec}) == []) is fine


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("{type: Limited, limited: {limitResponse: {type: Reject}}}", []),
        ("{}", [("spec.type", "Required")]),
        ("{type: Exempt}", [("spec.type", "Invalid")]),
        ("{type: Limited}", [("spec.limited", "Required")]),
        (
            "{type: Limited, limited: {limitResponse: {type: Queue}}}",
            [("spec.limited.limitResponse.queuing", "Required")],
        ),
        (
            "{type: Limited, limited: {limitResponse: {type: Queue, queuing: {queues: 4}}}}",
            [("spec.limited.limitResponse.queuing.handSize", "Invalid")],
        ),
        (
            "{type: Limited, limited: {lendablePercent: 101, limitResponse: {type: Reject}}}",
            [("spec.limited.lendablePercent", "Invalid")],
        ),
    ],
)
def test_invalid_priority_level_is_rejected(kind_of: Any, spec: str, expected: Causes) -> None:
    assert kind_of(V1, "PriorityLevelConfiguration").create_errors(f"spec: {spec}") == expected


def test_queues_have_defaults(kind_of: Any) -> None:
    made = kind_of(V1, "PriorityLevelConfiguration").stored(
        "spec: {type: Limited, limited: {limitResponse: {type: Queue, queuing: {}}}}"
    )
    limited = made["spec"]["limited"]
    assert limited["limitResponse"]["queuing"] == {"queues": 64, "handSize": 8, "queueLengthLimit": 50}
    assert (limited["nominalConcurrencyShares"], limited["lendablePercent"]) == (30, 0)


@pytest.mark.parametrize("kind", ["FlowSchema", "PriorityLevelConfiguration"])
def test_mandatory_configuration_is_immutable(kind_of: Any, kind: str) -> None:
    kinds = kind_of(V1, kind)
    fixed = kinds.decode(
        {"metadata": {"name": "catch-all"}, "spec": bootstrap.builtin(kind, "catch-all")["spec"]}
    )
    assert kinds.change_errors(fixed, lambda o: None) == []

    def change(obj: Any) -> None:
        if kind == "FlowSchema":
            obj["spec"]["matchingPrecedence"] = 9999
        else:
            obj["spec"]["limited"]["lendablePercent"] = 1

    assert kinds.change_errors(fixed, change) == [("spec", "Invalid")]


def test_schema_without_its_level_is_dangling(kind_of: Any) -> None:
    schema = kind_of(V1, "FlowSchema").stored(f"spec: {{{LEVEL}}}")
    assert dangling.mark(schema, level_exists=False, now="2030-01-01T00:00:00Z")
    assert not dangling.mark(schema, level_exists=False, now="2030-01-02T00:00:00Z")
    assert dangling.mark(schema, level_exists=True, now="2030-01-03T00:00:00Z")
    (condition,) = schema["status"]["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "Found")
    assert condition["lastTransitionTime"] == "2030-01-03T00:00:00Z"
