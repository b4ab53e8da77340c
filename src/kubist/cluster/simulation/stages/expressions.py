"""Expressions of a Stage in jq or CEL: conditions of the selector, durations and weights."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from kubist.base.offload import SLICE, stay
from kubist.cluster.simulation.stages.jq import Query
from kubist.cluster.simulation.stages.limits import StageError, check_source, shortened
from kubist.model import cel
from kubist.model.cel.errors import CostExceeded, EvaluationError
from kubist.model.cel.kubernetes import quantity
from kubist.model.cel.types import DOUBLE, QUANTITY, TIMESTAMP
from kubist.model.cel.values import Duration, Timestamp, parse_timestamp
from kubist.model.meta import durations
from kubist.model.meta.object import Object

_STAMPS = "creationTimestamp deletionTimestamp startTime startedAt finishedAt"
_CONDITION_TIMES = "lastTransitionTime lastProbeTime lastHeartbeatTime"
_TIMES = frozenset((*_STAMPS.split(), *_CONDITION_TIMES.split()))
"""Fields of pods and nodes that CEL sees as timestamps."""


class Subject:
    """Object that is compared with Stages at one moment."""

    __slots__ = ("_cel", "now", "obj", "random")

    def __init__(self, obj: Object, now: float, random: Random) -> None:
        self.obj = obj
        self.now = now
        self.random = random
        self._cel: Any = None

    @property
    def cel(self) -> Any:
        """The object as CEL sees it."""
        if self._cel is None:
            typed = self.obj.get("apiVersion") == "v1" and self.obj.get("kind") in ("Pod", "Node")
            self._cel = _with_times(self.obj) if typed else self.obj
        return self._cel


def _with_times(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_times(item) for item in value]
    if not isinstance(value, dict):
        return value
    fields = {}
    for key, item in value.items():
        fields[key] = _with_times(item)
        if key in _TIMES and isinstance(item, str):
            with contextlib.suppress(EvaluationError):
                fields[key] = parse_timestamp(item)
    return fields


class Program:
    """CEL expression over `self`, with KWOK's functions Now, Rand, SinceSecond, UnixSecond and Quantity."""

    def __init__(self, text: str) -> None:
        self.text = text
        check_source(text)
        self._subject: Subject | None = None
        try:
            self._program = cel.compile(text, cel.Environment({"self": cel.DYN}, self._functions()))
        except cel.CompileError as error:
            raise StageError(f"CEL expression {shortened(text)}: {error}") from None

    def _functions(self) -> dict[str, tuple[Iterable[cel.Overload], Callable[..., Any]]]:
        def subject() -> Subject:
            assert self._subject is not None
            return self._subject

        def overloads(name: str, argument: cel.Type, result: cel.Type) -> list[cel.Overload]:
            """The function, and the method of the same name."""
            return [
                cel.Overload(f"{name}_{kind}", (argument,), result, kind == "method")
                for kind in ("function", "method")
            ]

        return {
            "Now": (
                [cel.Overload("kwok_now", (), TIMESTAMP, False)],
                lambda: Timestamp(int(subject().now * 1e9)),
            ),
            "Rand": ([cel.Overload("kwok_rand", (), DOUBLE, False)], lambda: subject().random.random()),
            "SinceSecond": (
                overloads("kwok_since", cel.DYN, DOUBLE),
                lambda obj: subject().now - _created(obj),
            ),
            "UnixSecond": (overloads("kwok_unix", TIMESTAMP, DOUBLE), _unix),
            "Quantity": (overloads("kwok_quantity", cel.STRING, QUANTITY), quantity),
        }

    def evaluate(self, subject: Subject) -> Any:
        """Value of the expression. StageError if the evaluation fails."""
        self._subject = subject
        try:
            return stay(self._program.evaluate, {"self": subject.cel}, SLICE)[0]
        except (EvaluationError, CostExceeded) as error:
            why = str(error) or "the evaluation costs too much"
            raise StageError(f"CEL expression {shortened(self.text)}: {why}") from None
        finally:
            self._subject = None


def _created(obj: Any) -> float:
    created = (obj.get("metadata") or {}).get("creationTimestamp") if isinstance(obj, dict) else None
    if isinstance(created, str):
        created = parse_timestamp(created)
    if not isinstance(created, Timestamp):
        raise EvaluationError("SinceSecond: the object has no creationTimestamp")
    return created.nanoseconds / 1e9


def _unix(moment: Any) -> float:
    if not isinstance(moment, Timestamp):
        raise EvaluationError("UnixSecond: the argument is not a timestamp")
    return moment.nanoseconds / 1e9


class Requirement:
    """jq expression of a selector with operator and values."""

    def __init__(self, key: str, operator: str, values: list[str]) -> None:
        self._query = Query(key)
        if operator in ("In", "NotIn"):
            if not values:
                raise StageError(f"the operator {operator} needs values")
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                raise StageError(f"the operator {operator} takes no values")
        else:
            raise StageError(f"unknown operator {operator!r}: use In, NotIn, Exists or DoesNotExist")
        self._operator = operator
        self._values = frozenset(values)

    def matches(self, subject: Subject) -> bool:
        """A failed evaluation counts as no value, as in KWOK."""
        values = self._query.values(subject.obj) or ()
        if self._operator in ("Exists", "DoesNotExist"):
            return bool(values) == (self._operator == "Exists")
        return any(_text(value) in self._values for value in values) == (self._operator == "In")


def _text(value: Any) -> str | None:
    """Value as the values of a selector write it; None for lists and objects."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else None


class Condition:
    """CEL expression of a selector. A failed evaluation, or a value that is not a boolean, does not match."""

    def __init__(self, text: str) -> None:
        self._program = Program(text)

    def matches(self, subject: Subject) -> bool:
        try:
            return self._program.evaluate(subject) is True
        except StageError:
            return False


class Source:
    """`expressionFrom`, `jq` or `cel`: an expression that gives a duration or a weight."""

    def __init__(self, *, jq: str = "", cel: str = "") -> None:
        self._program = Program(cel) if cel else None
        self._query = Query(jq) if jq else None

    def seconds(self, subject: Subject, default: float | None) -> float | None:
        """Duration: a time minus now, or a Go duration. None if the expression gives an empty string."""
        if self._program is not None:
            return _seconds(self._program.evaluate(subject))
        values = (self._query.values(subject.obj) if self._query else None) or ()
        text = values[0] if values else None
        if not isinstance(text, str):
            return default
        if not text:
            return None
        try:
            return parse_timestamp(text).nanoseconds / 1e9 - subject.now
        except EvaluationError:
            pass
        try:
            return durations.parse(text) / durations.SECOND
        except ValueError:
            return default

    def integer(self, subject: Subject, default: int) -> int | None:
        """Weight. None if the expression gives text that is not a number."""
        if self._program is not None:
            return _integer(self._program.evaluate(subject))
        values = (self._query.values(subject.obj) if self._query else None) or ()
        if not values or not isinstance(values[0], str | int | float) or isinstance(values[0], bool):
            return default
        if not isinstance(values[0], str):
            return int(values[0])
        try:
            return int(values[0], 0)
        except ValueError:
            return None


def _seconds(value: Any) -> float:
    """Value of a CEL expression as seconds. Numbers are nanoseconds, as in KWOK."""
    if isinstance(value, Duration):
        return value.nanoseconds / 1e9
    if isinstance(value, str):
        try:
            return durations.parse(value) / durations.SECOND
        except ValueError as error:
            raise StageError(str(error)) from None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value / 1e9
    raise StageError("the value of a CEL expression is not a duration")


def _integer(value: Any) -> int:
    if isinstance(value, Duration):
        return value.nanoseconds
    if isinstance(value, bool | int | float):
        return int(value)
    raise StageError("the value of a CEL expression is not a number")
