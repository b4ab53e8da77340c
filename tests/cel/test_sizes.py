"""Values that grow in each step are errors before they take memory or time."""

from __future__ import annotations

from typing import Any

import pytest

from kubist.model import cel
from kubist.model.cel import DYN, CostExceeded, Environment, Program, object_type

STEPS = 40


def evaluate(expression: str, **variables: Any) -> tuple[Any, int]:
    return Program(expression, Environment(dict.fromkeys(variables, DYN))).evaluate(variables)


def largest(value: Any, step: str) -> Any:
    """Last value before a step costs too much."""
    for _ in range(STEPS):
        try:
            value, _cost = evaluate(step, v=value)
        except CostExceeded:
            return value
    raise AssertionError("every step was possible")


@pytest.mark.parametrize("step", ["v + v", "'%s%s'.format([v, v])", "v.replace('', v)", "[v, v].join(v)"])
def test_doubled_text_exceeds_the_cost(step: str) -> None:
    assert len(largest("ab", step)) < 20_000_000


def test_doubled_list_exceeds_the_cost() -> None:
    assert len(largest([1, 2], "v + v")) < 5_000_000


def nested() -> Any:
    """List of lists that has 2 ** 40 elements, each level twice in the next."""
    value: Any = [1, 1]
    for _ in range(STEPS):
        value = [value, value]
    return value


@pytest.mark.parametrize(
    "expression", ["a == b", "a in [b]", "'%s'.format([a]) == ''", "[a].indexOf(b) == 0"]
)
def test_repeated_values_are_not_traversed_without_end(expression: str) -> None:
    with pytest.raises(CostExceeded):
        evaluate(expression, a=nested(), b=nested())


@pytest.mark.parametrize(
    "expression", ["v.distinct().size() > 0", "sets.contains(v, v)", "sets.intersects(v, w)"]
)
def test_quadratic_function_of_a_long_list_is_not_called(expression: str) -> None:
    with pytest.raises(CostExceeded):
        evaluate(expression, v=list(range(100_000)), w=[-1] * 100_000)


def test_variables_are_not_converted_again() -> None:
    """Otherwise each reference copies a list of timestamps, and lists of lists that are shared take all memory."""
    times = cel.list_of(cel.types.TIMESTAMP)
    variables = object_type("kubernetes.variables", {"times": times})
    held = [cel.values.parse_timestamp("2020-01-01T00:00:00Z")]
    value, _ = Program("variables.times", Environment({"variables": variables})).evaluate(
        {"variables": {"times": held}}
    )
    assert value is held


def test_result_of_a_comprehension_is_a_list_of_its_own() -> None:
    expression = "[1, 2].map(x, [x].map(y, y + x)) + [[1, 2].filter(x, x > 1) + [3]]"
    assert evaluate(expression)[0] == [[2], [4], [2, 3]]
    made = evaluate("v.map(x, x)", v=[1, 2])[0]
    assert made.__class__ is list
    assert (evaluate("v + [3]", v=made)[0], made) == ([1, 2, 3], [1, 2])


def test_ordinary_costs_are_unchanged() -> None:
    assert evaluate("v + v", v=[1, 2])[1] == 3
    assert evaluate("v.replace('a', 'bb').size() > 0", v="a" * 100)[1] == 23
