"""CEL environments of policy expressions."""

from __future__ import annotations

from typing import Any

import pytest

from kubist.api.kinds.admissionregistration import expressions
from kubist.api.kinds.admissionregistration.expressions import Environment
from kubist.model import cel


def test_each_of_many_variables_is_compiled_a_fixed_number_of_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each variable is compiled a fixed number of times, because recompiling all earlier variables would take
    exponential time."""
    compiled: list[str] = []
    real = cel.compile

    def counted(expression: str, *arguments: Any) -> Any:
        compiled.append(expression)
        return real(expression, *arguments)

    monkeypatch.setattr(cel, "compile", counted)
    environment = Environment()
    number = 400
    for index in range(number):
        expression = f"variables.v{index - 1} && object.a == {index}" if index else "object.a == 0"
        expressions.compile(expression, environment, "bool")
        environment = environment.defining(f"v{index}", expression)
    expressions.compile(f"variables.v{number - 1}", environment, "bool")
    told = environment.without_authorizer()
    expressions.compile(f"variables.v{number - 1}", told, "bool")
    assert len(compiled) <= 3 * number + 2


def test_variable_types_depend_on_declared_names() -> None:
    """A variable that uses `authorizer` does not compile without it and has type DYN."""
    asking = "authorizer.group('').resource('pods').check('get').allowed()"
    environment = Environment().defining("allowed", asking).defining("n", "1")
    assert environment.types()["allowed"] == cel.BOOL
    without = environment.without_authorizer().types()
    assert without["allowed"] == cel.DYN
    assert str(without["n"]) == "int"


def test_repeated_variable_name_resolves_to_the_later_one() -> None:
    environment = Environment().defining("a", "1").defining("a", "'x'").defining("b", "variables.a")
    assert str(environment.types()["b"]) == "string"
