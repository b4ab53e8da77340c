"""Nodes of a parsed Go template: each function makes a closure that computes a value or writes output."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kubist.cluster.simulation.stages import go_template_functions as functions
from kubist.cluster.simulation.stages.limits import MAX_SIZE, Budget, StageError


@dataclass(slots=True)
class State:
    """State of one rendering."""

    functions: Mapping[str, Callable[..., Any]]
    variables: dict[int, Any]
    """Values by number of the variable. The parser gives each declaration its number; `$` has 0."""
    output: list[str] = field(default_factory=list)
    size: int = 0
    budget: Budget = field(default_factory=Budget)

    def write(self, text: str) -> None:
        self.size += len(text)
        if self.size > MAX_SIZE:
            raise StageError(f"the output has more than {MAX_SIZE} characters")
        self.output.append(text)


Value = Callable[[State, Any], Any]
"""Computes a value from the state and the dot."""
Node = Callable[[State, Any], None]
"""Writes a part of the output."""


def sequence(nodes: list[Node]) -> Node:
    def run(state: State, dot: Any) -> None:
        for node in nodes:
            state.budget.spend()
            node(state, dot)

    return run


def text(content: str) -> Node:
    return lambda state, _dot: state.write(content)


def print_(value: Value) -> Node:
    def run(state: State, dot: Any) -> None:
        result = value(state, dot)
        state.budget.spend_on(result)
        state.write("<no value>" if result is None else functions.text_of(result))

    return run


def branch(value: Value, then: Node, otherwise: Node | None, moves: bool) -> Node:
    """`if`, and `with`, which moves the dot."""

    def run(state: State, dot: Any) -> None:
        result = value(state, dot)
        if result:
            then(state, result if moves else dot)
        elif otherwise is not None:
            otherwise(state, dot)

    return run


def range_(value: Value, variables: list[int], body: Node, otherwise: Node | None) -> Node:
    """`range`. `value` gives pairs of keys and items."""

    def run(state: State, dot: Any) -> None:
        pairs = value(state, dot)
        if not pairs and otherwise is not None:
            otherwise(state, dot)
        for pair in pairs:
            state.variables.update(zip(variables, pair[-len(variables) :], strict=False))
            body(state, pair[1])

    return run


def piped(first: Value, calls: list[Callable[..., Any]]) -> Value:
    """Pipeline: each call gets the value of the one before as its last argument."""

    def run(state: State, dot: Any) -> Any:
        result = first(state, dot)
        for following in calls:
            result = following(state, dot, result)
        return result

    return run


def call(name: str, arguments: list[Value]) -> Callable[..., Any]:
    def run(state: State, dot: Any, *piped: Any) -> Any:
        state.budget.spend()
        values = [*(argument(state, dot) for argument in arguments), *piped]
        return functions.call(name, values, state.functions, state.budget)

    return run


def decision(name: str, arguments: list[Value]) -> Callable[..., Any]:
    """`and` and `or`: they stop at the argument that decides."""

    def run(state: State, dot: Any, *piped: Any) -> Any:
        state.budget.spend()
        if not arguments and not piped:
            raise StageError(f"{name}: an argument is missing")
        result: Any = None
        for argument in arguments:
            result = argument(state, dot)
            if bool(result) == (name == "or"):
                return result
        return piped[0] if piped else result

    return run


def fields(target: Value, names: list[str]) -> Value:
    """`.a.b` of an operand."""

    def run(state: State, dot: Any) -> Any:
        result = target(state, dot)
        for name in names:
            state.budget.spend()
            result = functions.field_of(result, name)
        return result

    return run if names else target


def located(line: int, run: Callable[[State, Any], Any]) -> Callable[[State, Any], Any]:
    """Function whose errors name the line."""

    def located(state: State, dot: Any) -> Any:
        try:
            return run(state, dot)
        except StageError as error:
            raise on_line(error, line) from None

    return located


def on_line(error: StageError, line: int) -> StageError:
    text = str(error)
    return error if text.startswith("line ") else StageError(f"line {line}: {text}")
