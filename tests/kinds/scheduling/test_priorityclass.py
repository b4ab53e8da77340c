"""PriorityClass: user and system values, immutable fields."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kubist.model.meta.object import Object
from kubist.model.meta.status import APIError


@pytest.fixture
def classes(kind_of: Any) -> Any:
    return kind_of("scheduling.k8s.io/v1", "PriorityClass")


CLASSES: list[tuple[str, Object, list[tuple[str, str]]]] = [
    ("high", {"value": 1_000_000_000}, []),
    ("higher", {"value": 1_000_000_001}, [("value", "Forbidden")]),
    ("low", {"value": -5, "preemptionPolicy": "Never"}, []),
    ("odd", {"value": 5, "preemptionPolicy": "Sometimes"}, [("preemptionPolicy", "NotSupported")]),
    ("system-mine", {"value": 5}, [("metadata.name", "Forbidden")]),
    ("system-node-critical", {"value": 2_000_001_000}, []),
    ("system-node-critical", {"value": 7}, [("metadata.name", "Forbidden")]),
]


@pytest.mark.parametrize(("name", "fields", "causes"), CLASSES)
def test_invalid_classes_are_rejected(
    classes: Any, name: str, fields: Object, causes: list[tuple[str, str]]
) -> None:
    assert classes.create_errors({"metadata": {"name": name}, **fields}) == causes


def test_value_and_preemption_policy_are_immutable(classes: Any) -> None:
    old = classes.stored({"metadata": {"name": "x"}, "value": 5})
    assert classes.change_errors(old, lambda obj: obj.update(value=6)) == [("value", "Forbidden")]
    assert classes.change_errors(old, lambda obj: obj.update(preemptionPolicy="Never")) == [
        ("preemptionPolicy", "Invalid")
    ]
    new = classes.changed(old, lambda obj: obj.update(description="other"))
    assert new["metadata"]["generation"] == 1


def test_system_classes_cannot_be_deleted(classes: Any) -> None:
    classes.context.resource = SimpleNamespace(group="scheduling.k8s.io", resource="priorityclasses")
    classes.strategy.before_delete(classes.context, "mine", "")
    with pytest.raises(APIError) as caught:
        classes.strategy.before_delete(classes.context, "system-cluster-critical", "")
    assert caught.value.code == 403
