"""Evaluation frame, and logical operators, conditionals and quantifiers with CEL's error absorption: a deciding operand
hides an error of the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubist.model.cel.errors import CostExceeded, EvaluationError, NoSuchOverload
from kubist.model.cel.values import Optional


class Frame:
    """Variables and cost of one evaluation."""

    __slots__ = ("cost", "limit", "variables")

    def __init__(self, variables: dict[str, Any], limit: int) -> None:
        self.variables = variables
        self.cost = 0
        self.limit = limit


Closure = Callable[[Frame], Any]
Extra = dict[str, Callable[..., Any]]


def _truth(value: Any) -> bool:
    if value is True or value is False:
        return bool(value)
    raise NoSuchOverload


def both_of(left: Closure, right: Closure) -> Closure:
    def both(frame: Frame) -> bool:
        try:
            if not _truth(left(frame)):
                return False
        except EvaluationError as error:
            if _settles(right, frame, False):
                return False
            raise error
        return _truth(right(frame))

    return both


def _settles(other: Closure, frame: Frame, verdict: bool) -> bool:
    """Whether the other operand decides the result although one failed."""
    try:
        return _truth(other(frame)) is verdict
    except EvaluationError:
        return False


def either_of(left: Closure, right: Closure) -> Closure:
    def either(frame: Frame) -> bool:
        try:
            if _truth(left(frame)):
                return True
        except EvaluationError as error:
            if _settles(right, frame, True):
                return True
            raise error
        return _truth(right(frame))

    return either


def choice_of(test: Closure, yes: Closure, no: Closure) -> Closure:
    return lambda frame: yes(frame) if _truth(test(frame)) else no(frame)


def value_or(name: str, optional: Closure, other: Closure) -> Closure:
    def choose(frame: Frame) -> Any:
        candidate = optional(frame)
        if not isinstance(candidate, Optional):
            raise NoSuchOverload(name)
        if candidate.present:
            return candidate if name == "or" else candidate.value
        return other(frame)

    return choose


def quantifier(verdict: bool, range_: Closure, pairs: Any, var: str, var2: str, test: Closure) -> Closure:
    """`all` and `exists`: the first deciding item ends the loop. Errors count only if no item decides."""

    def quantify(frame: Frame) -> bool:
        outer = frame.variables
        container = range_(frame)
        inner = frame.variables = dict(outer)
        failure: EvaluationError | None = None
        try:
            for item in pairs(container):
                if var2:
                    inner[var], inner[var2] = item
                else:
                    inner[var] = item
                frame.cost += 4 if verdict else 3
                try:
                    if _truth(test(frame)) is verdict:
                        return verdict
                except EvaluationError as error:
                    failure = failure or error
                if frame.cost > frame.limit:
                    raise CostExceeded
            frame.cost += 1
        finally:
            frame.variables = outer
        if failure is not None:
            raise failure
        return not verdict

    return quantify
