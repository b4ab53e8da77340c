"""Vocabulary of field rules: paths, order of the errors, and rules that end the others of a value."""

from __future__ import annotations

from typing import Any

import pytest

from kubist.api.kinds.shared.rules import (
    Rule,
    at_least,
    each,
    field,
    items,
    keys,
    label,
    max_bytes,
    must,
    not_null,
    nullable,
    one_of,
    optional,
    required,
    struct,
    subdomain,
    unchanged,
)


def causes(rule: Rule, value: Any, path: str = "spec") -> list[tuple[str, str]]:
    return [(error.field, error.reason.removeprefix("FieldValue")) for error in rule(value, path)]


def test_errors_are_in_the_order_of_the_rules() -> None:
    taint = struct(
        field("effect", one_of("NoSchedule")), field("key", label), field("count", at_least(1, "low"))
    )
    assert causes(taint, {"key": "A", "count": 0, "effect": "x"}) == [
        ("spec.effect", "NotSupported"),
        ("spec.key", "Invalid"),
        ("spec.count", "Invalid"),
    ]


@pytest.mark.parametrize(
    ("first", "value", "expected"),
    [
        (required, None, ["Required"]),
        (required, "", ["Required"]),
        (not_null, None, ["Required"]),
        (not_null, "", ["Invalid"]),
        (optional, None, []),
        (optional, "", []),
        (nullable, None, []),
        (nullable, "", ["Invalid"]),
    ],
)
def test_first_rule_may_end_the_others(first: Rule, value: str | None, expected: list[str]) -> None:
    rule = struct(field("name", first, must(bool, "must not be empty")), field("other", required))
    assert causes(rule, {"name": value, "other": "x"}) == [("spec.name", reason) for reason in expected]


def test_end_of_one_field_is_not_the_end_of_its_struct() -> None:
    assert causes(struct(field("a", required), field("b", required)), {}) == [
        ("spec.a", "Required"),
        ("spec.b", "Required"),
    ]


def test_fields_of_a_whole_object_and_of_an_absent_struct() -> None:
    rule = field("spec", field("name", required))
    assert causes(rule, {"spec": {}}, "") == causes(rule, {}, "") == [("spec.name", "Required")]


def test_items_are_checked_before_their_repetitions() -> None:
    rule = items("devices", field("name", subdomain), unique="name")
    assert causes(rule, {"devices": [{"name": "A"}, {"name": "b"}, {"name": "A"}]}) == [
        ("spec.devices[0].name", "Invalid"),
        ("spec.devices[2].name", "Invalid"),
        ("spec.devices[2]", "Duplicate"),
    ]


def test_items_of_a_list_that_is_too_long_are_not_checked() -> None:
    assert causes(each(label, most=2), ["A", "B", "C"]) == [("spec", "TooMany")]
    assert causes(each(label, most=2, unique=str), ["a", "a"]) == [("spec[1]", "Duplicate")]
    assert causes(each(label), None) == []


def test_keys_are_required_limited_and_checked() -> None:
    rule = keys("counters", label, most=2)
    assert causes(rule, {}) == [("spec.counters", "Required")]
    assert causes(rule, {"counters": dict.fromkeys("abc")}) == [("spec.counters", "TooMany")]
    assert causes(rule, {"counters": {"A": 1}}) == [("spec.counters", "Invalid")]


def test_limits_count_bytes_and_changes_are_rejected() -> None:
    assert causes(max_bytes(3), "ää") == [("spec", "TooLong")]
    assert causes(max_bytes(3), None) == []
    assert causes(unchanged("a", "string"), "b") == [("spec", "Invalid")]
    assert causes(unchanged("a", "string"), "a") == []
