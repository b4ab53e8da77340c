"""Conditions: validation, and setting one."""

from typing import Any

import pytest

from kubist.model.meta.conditions import set_condition, validate_conditions

FINE = {"type": "Ready", "status": "True", "reason": "AllGood", "lastTransitionTime": "2030-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, []),
        ({"type": ""}, [("type", "Invalid"), ("type", "Invalid")]),
        ({"type": "example.com/Ready"}, []),
        ({"status": "Yes"}, [("status", "NotSupported")]),
        ({"observedGeneration": -1}, [("observedGeneration", "Invalid")]),
        ({"lastTransitionTime": None}, [("lastTransitionTime", "Required")]),
        ({"reason": ""}, [("reason", "Required")]),
        ({"reason": "Not Good"}, [("reason", "Invalid")]),
        ({"reason": "A" * 1025}, [("reason", "TooLong")]),
        ({"message": "m" * 32769}, [("message", "TooLong")]),
    ],
)
def test_invalid_condition_fields_are_rejected(
    change: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    errors = validate_conditions([{**FINE, **change}], "c")
    assert [(e.field.removeprefix("c[0]."), e.reason.removeprefix("FieldValue")) for e in errors] == expected


def test_condition_types_must_be_unique() -> None:
    assert [error.field for error in validate_conditions([FINE, FINE], "c")] == ["c[1].type"]


def test_transition_time_changes_with_the_status_only() -> None:
    conditions: list[dict[str, Any]] = []
    assert set_condition(conditions, {"type": "A", "status": "True", "reason": "x"}, "t1")
    assert set_condition(conditions, {"type": "A", "status": "True", "reason": "y"}, "t2")
    assert conditions[0]["lastTransitionTime"] == "t1"
    assert not set_condition(conditions, {"type": "A", "status": "True", "reason": "y"}, "t3")
    assert set_condition(conditions, {"type": "A", "status": "False", "reason": "y"}, "t4")
    assert conditions == [{"type": "A", "status": "False", "reason": "y", "lastTransitionTime": "t4"}]
