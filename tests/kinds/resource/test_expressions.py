"""CEL expressions that select devices."""

from __future__ import annotations

import pytest

from kubist.api.kinds.resource.expressions import validate_selector


@pytest.mark.parametrize(
    "expression",
    [
        'device.driver == "gpu.example.com"',
        'device.attributes["gpu.example.com"].model == "a100"',
        'device.capacity["gpu.example.com"].memory.compareTo(quantity("10Gi")) >= 0',
        'device.attributes["gpu.example.com"].healthy',
        'cel.bind(gpu, device.attributes["gpu.example.com"], gpu.family == "a" && gpu.index < 4)',
    ],
)
def test_bool_and_dyn_expressions_are_accepted(expression: str) -> None:
    assert validate_selector({"cel": {"expression": expression}}, "s") == []


@pytest.mark.parametrize(
    ("selector", "field", "reason"),
    [
        ({}, "s.cel", "FieldValueRequired"),
        ({"cel": {}}, "s.cel.expression", "FieldValueInvalid"),
        ({"cel": {"expression": "1 + 1"}}, "s.cel.expression", "FieldValueInvalid"),
        ({"cel": {"expression": "device.colour"}}, "s.cel.expression", "FieldValueInvalid"),
        ({"cel": {"expression": "node.name == 'a'"}}, "s.cel.expression", "FieldValueInvalid"),
        ({"cel": {"expression": "'a' + " * 2000 + "'a' == ''"}}, "s.cel.expression", "FieldValueTooLong"),
    ],
)
def test_invalid_expression_is_rejected(selector: dict[str, dict[str, str]], field: str, reason: str) -> None:
    assert [(error.field, error.reason) for error in validate_selector(selector, "s")] == [(field, reason)]
