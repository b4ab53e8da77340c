"""Label selectors inside objects, and integer-or-percentage values."""

from __future__ import annotations

from typing import Any

import pytest

from kubist.api.kinds.shared.values import (
    int_or_percent_value,
    validate_at_most_100_percent,
    validate_int_or_percent,
)
from kubist.model.meta.labels import has_invalid_values, selector_matches, validate_selector


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("selector", "labels", "matches"),
    [
        (None, {"a": "b"}, False),
        ({}, None, True),
        ({"matchLabels": {"a": "b"}}, {"a": "b", "c": "d"}, True),
        ({"matchLabels": {"a": "b"}}, None, False),
        (expression("a", "In", "b", "c"), {"a": "c"}, True),
        (expression("a", "In", "b"), {}, False),
        (expression("a", "NotIn", "b"), {}, True),
        (expression("a", "NotIn", "b"), {"a": "b"}, False),
        (expression("a", "Exists"), {"a": ""}, True),
        (expression("a", "DoesNotExist"), {"a": ""}, False),
        (expression("a", "Like", "b"), {"a": "b"}, False),
    ],
)
def test_selector_matches_labels(
    selector: dict[str, Any] | None, labels: dict[str, str] | None, matches: bool
) -> None:
    assert selector_matches(selector, labels) is matches


@pytest.mark.parametrize(
    ("selector", "causes"),
    [
        (None, []),
        ({}, []),
        ({"matchLabels": {"a b": "c d"}}, [("s.matchLabels", "Invalid"), ("s.matchLabels", "Invalid")]),
        (expression("a", "In"), [("s.matchExpressions[0].values", "Required")]),
        (expression("a", "Exists", "b"), [("s.matchExpressions[0].values", "Forbidden")]),
        (expression("a", "Like"), [("s.matchExpressions[0].operator", "Invalid")]),
        (expression("-a", "Exists"), [("s.matchExpressions[0].key", "Invalid")]),
        (expression("a", "In", "b", "-"), [("s.matchExpressions[0].values[1]", "Invalid")]),
    ],
)
def test_invalid_selector_is_rejected(selector: dict[str, Any] | None, causes: list[tuple[str, str]]) -> None:
    errors = validate_selector(selector, "s")
    assert [(error.field, error.reason.removeprefix("FieldValue")) for error in errors] == causes


def test_stored_invalid_values_stay_allowed() -> None:
    selector = expression("a", "In", "-")
    assert has_invalid_values(selector)
    assert validate_selector(selector, "s", allow_invalid_values=True) == []


@pytest.mark.parametrize(
    ("value", "number", "valid", "at_most_all"),
    [
        (3, 3, True, True),
        (-1, -1, False, True),
        ("25%", 25, True, True),
        ("125%", 125, True, False),
        ("7", 7, False, True),
        ("many", 0, False, True),
        ("-5%", 0, False, True),
    ],
)
def test_integer_or_percentage_validation(
    value: int | str, number: int, valid: bool, at_most_all: bool
) -> None:
    assert int_or_percent_value(value) == number
    assert (validate_int_or_percent(value, "x") == []) is valid
    assert (validate_at_most_100_percent(value, "x") == []) is at_most_all
