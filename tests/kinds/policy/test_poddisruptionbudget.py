"""PodDisruptionBudget: what budgets there may be."""

from __future__ import annotations

from typing import Any

import pytest

Object = dict[str, Any]


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
def test_budgets(budgets: Any, spec: Object, causes: list[tuple[str, str]]) -> None:
    assert budgets.refused({"spec": spec}) == causes


def test_status_counts_are_not_negative(budgets: Any) -> None:
    old = budgets.stored({"spec": {"minAvailable": 1}})
    assert old["status"]["disruptionsAllowed"] == 0
    causes = budgets.refused_change(old, lambda obj: obj["status"].update(currentHealthy=-1), "status")
    assert causes == [("status.currentHealthy", "Invalid")]
