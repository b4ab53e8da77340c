"""PodDisruptionBudget: validation of spec and status."""

from __future__ import annotations

from typing import Any

import pytest

from kubist.model.meta.object import Object


@pytest.fixture
def budgets(kind_of: Any) -> Any:
    return kind_of("policy/v1", "PodDisruptionBudget")


SPECS: list[tuple[Object, list[tuple[str, str]]]] = [
    ({}, []),
    ({"minAvailable": 0}, []),
    ({"maxUnavailable": "100%"}, []),
    ({"minAvailable": 1, "maxUnavailable": 1}, [("spec", "Invalid")]),
    ({"minAvailable": -1}, [("spec.minAvailable", "Invalid")]),
    ({"minAvailable": "101%"}, [("spec.minAvailable", "Invalid")]),
    ({"maxUnavailable": "half"}, [("spec.maxUnavailable", "Invalid")]),
    ({"unhealthyPodEvictionPolicy": "Never"}, [("spec.unhealthyPodEvictionPolicy", "NotSupported")]),
    ({"selector": {"matchLabels": {"a": "b c"}}}, [("spec.selector.matchLabels", "Invalid")]),
]


@pytest.mark.parametrize(("spec", "causes"), SPECS)
def test_invalid_spec_is_rejected(budgets: Any, spec: Object, causes: list[tuple[str, str]]) -> None:
    assert budgets.create_errors({"spec": spec}) == causes


def test_negative_status_counts_are_rejected(budgets: Any) -> None:
    old = budgets.stored({"spec": {"minAvailable": 1}})
    assert old["status"]["disruptionsAllowed"] == 0
    causes = budgets.change_errors(old, lambda obj: obj["status"].update(currentHealthy=-1), "status")
    assert causes == [("status.currentHealthy", "Invalid")]
