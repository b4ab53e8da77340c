"""jq as the expressions of Stages use it: a pipe of paths and of `select` with one comparison.

    Query('.status.conditions.[] | select(.type == "Ready") | .status').values(pod)

`Query` raises `StageError` for everything else. `docs/workloads.md` describes the subset.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from kubist.cluster.simulation.stages.limits import (
    Budget,
    StageError,
    check_source,
    shortened,
    string_literal,
    unsupported,
)

_STRING = r'"(?:[^"\\]|\\.)*+"'
_PART = re.compile(
    rf"\.(?P<field>[A-Za-z_][A-Za-z0-9_]*+) \s*+"
    rf"| \.?+ \[ \s*+ (?P<key>{_STRING})? \s*+ \] \s*+"
    rf"| \. (?P<quoted>{_STRING}) \s*+",
    re.VERBOSE | re.DOTALL,
)
"""Part of a path: a field, or all items."""
_DOT = re.compile(r"\.(?!\.)\s*+")
_SELECT = re.compile(r"select\s*+\(\s*+")
_COMPARISON = re.compile(rf"==\s*+({_STRING})\s*+\)\s*+", re.DOTALL)
_PIPE = re.compile(r"\|(?!=)\s*+")
Step = Callable[[Any, Budget], Sequence[Any]]
"""Function from one value to its outputs. StageError if the value has the wrong type."""


class Query:
    """A parsed expression."""

    __slots__ = ("_steps", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        check_source(text)
        try:
            self._steps = _pipe(text.strip())
        except StageError as error:
            raise StageError(f"jq expression {shortened(text)}: {error}") from None

    def values(self, data: Any) -> list[Any] | None:
        """Outputs without nulls; None if the evaluation fails. These are KWOK's rules."""
        try:
            return [value for value in _run(self._steps, data, Budget()) if value is not None]
        except StageError:
            return None


def _run(steps: list[Step], data: Any, budget: Budget) -> list[Any]:
    values = [data]
    for step in steps:
        budget.spend(len(values))
        values = [output for value in values for output in step(value, budget)]
    return values


def _field(name: str) -> Step:
    def run(value: Any, _budget: Budget) -> Sequence[Any]:
        if value is not None and not isinstance(value, dict):
            raise StageError(f"the value has no field {name}")
        return (value.get(name) if value else None,)

    return run


def _items(value: Any, _budget: Budget) -> Sequence[Any]:
    if isinstance(value, dict):
        return [value[key] for key in sorted(value)]
    if not isinstance(value, list):
        raise StageError("the value has no items")
    return value


def _select(path: list[Step], text: str) -> Step:
    def run(value: Any, budget: Budget) -> Sequence[Any]:
        return [value for output in _run(path, value, budget) if output == text]

    return run


def _pipe(text: str) -> list[Step]:
    steps: list[Step] = []
    at = 0
    while True:
        select = _SELECT.match(text, at)
        path, end = _path(text, select.end() if select else at)
        if select:
            comparison = _COMPARISON.match(text, end)
            if comparison is None:
                raise _refused(text, at)
            path, end = [_select(path, string_literal(comparison[1]))], comparison.end()
        steps += path
        if end == len(text):
            return steps
        pipe = _PIPE.match(text, end)
        if pipe is None:
            raise _refused(text, end)
        at = pipe.end()


def _path(text: str, start: int) -> tuple[list[Step], int]:
    """Steps of a path, and the position after it."""
    steps: list[Step] = []
    at = start
    while part := _PART.match(text, at):
        name = part["key"] or part["quoted"]
        if part["field"]:
            steps.append(_field(part["field"]))
        else:
            steps.append(_field(string_literal(name)) if name else _items)
        at = part.end()
    if not steps:
        dot = _DOT.match(text, at)
        at = dot.end() if dot else at
    if at == start or text[start] != ".":
        raise _refused(text, start)
    return steps, at


def _refused(text: str, at: int) -> StageError:
    """Error for the rest of an expression, which is malformed or outside the subset."""
    return (
        unsupported(shortened(text[at:])) if at < len(text) else StageError("the expression ends too early")
    )
