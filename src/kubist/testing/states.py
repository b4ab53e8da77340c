"""States for which a test waits: a condition, a field, existence, deletion, or a function of the object."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kubist.base.hints import did_you_mean
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.crd.jsonpath import JsonPath

# pytest omits the frames of this module from its reports.
__tracebackhide__ = True

Until = str | Callable[[Object], object]
"""State in the words of `kubectl wait --for`, or a function that returns whether the object is in the state."""
STATUSES = ("True", "False", "Unknown")
GONE = ("delete", "deleted", "deletion", "gone", "absent", "removed", "notfound")
"""Words that look like a condition but mean `delete`."""
MADE = ("create", "created", "creation", "exists", "present")
"""Words that look like a condition but mean `create`."""
NOT_YET = (KeyError, TypeError, IndexError, AttributeError)
"""Errors of a function that reads a field which the object does not have yet."""


class State:
    """State of one object. `title` completes "the object is not …"."""

    title = ""

    def is_met(self, obj: Object | None) -> bool:
        """Whether the object, or its absence, is the state. Raises RuntimeError if that can never be decided."""
        raise NotImplementedError

    def explain(self, obj: Object) -> str:
        """Reason why an existing object is not in the state, as the end of a message."""
        return f"; status: {obj.get('status')}"


class Deleted(State):
    title = "deleted"

    def is_met(self, obj: Object | None) -> bool:
        return obj is None


class Created(State):
    title = "created"

    def is_met(self, obj: Object | None) -> bool:
        return obj is not None


class Condition(State):
    """A condition, as kubectl compares it: one of an older generation does not count."""

    def __init__(self, text: str, type_: str, status: str) -> None:
        self.title = text
        self._type = type_.lower()
        self._status = status.lower()

    def is_met(self, obj: Object | None) -> bool:
        condition = self._find(obj) if obj is not None else None
        if obj is None or condition is None or _is_outdated(obj, condition):
            return False
        return str(condition.get("status")).lower() == self._status

    def _find(self, obj: Object) -> Object | None:
        return next((one for one in _conditions(obj) if str(one.get("type")).lower() == self._type), None)

    def explain(self, obj: Object) -> str:
        current = self._find(obj)
        if current is None:
            known = [str(condition.get("type")) for condition in _conditions(obj)]
            return did_you_mean(self.title.partition("=")[0], known) or super().explain(obj)
        if _is_outdated(obj, current):
            return "; the condition is of an older generation: the controller has not seen the last change"
        return super().explain(obj)


class Field(State):
    """A field has a value, or exists."""

    def __init__(self, text: str, path: JsonPath, value: str | None) -> None:
        self.title = f"{{{path.text}}}" + (f"={value}" if value is not None else " set")
        self._text = text
        self._path = path
        self._value = value

    def _read(self, obj: Object) -> list[str]:
        # Saves start-up time: few tests wait for a field.
        from kubist.api.crd.columns import printed
        from kubist.api.crd.jsonpath import PathError

        try:
            return [printed(value) for value in self._path.find(obj)]
        except PathError:  # such as an index of a list that is still too short
            return []

    def is_met(self, obj: Object | None) -> bool:
        values = self._read(obj) if obj is not None else []
        if self._value is None:
            return bool(values)
        if len(values) > 1:
            raise RuntimeError(f'"{self._text}" matches {len(values)} values instead of one: {values}')
        return values == [self._value]

    def explain(self, obj: Object) -> str:
        values = self._read(obj)
        return f"; it is {values[0]}" if values else f"; there is no such field{super().explain(obj)}"


class Accepted(State):
    """A function of the object returns true. While it reads a missing field, the object is not in the state."""

    def __init__(self, function: Callable[[Object], object]) -> None:
        name = getattr(function, "__name__", "")
        self.title = "accepted by the function" if name in ("", "<lambda>") else name
        self._function = function
        self._error = ""

    def is_met(self, obj: Object | None) -> bool:
        self._error = ""
        if obj is None:
            return False
        try:
            return bool(self._function(obj))
        except NOT_YET as error:
            self._error = _failure(error)
            return False
        except Exception as error:
            raise RuntimeError(f"the function failed with {_failure(error)}") from None

    def explain(self, obj: Object) -> str:
        error = f"; the function failed with {self._error}" if self._error else ""
        return error + super().explain(obj)


def parse(until: Until) -> State:
    """State of an argument. Rejects values that can never be met."""
    if callable(until):
        return Accepted(_checked(until))
    if not isinstance(until, str) or not until:
        raise TypeError(f'wait() takes a condition\'s type, "delete" or a function, not {until!r}')
    form, equals, rest = until.partition("=")
    if form == "jsonpath":
        return _field(until, rest)
    if form == "condition" and equals:
        form, equals, rest = rest.partition("=")
    if not equals:
        if until in ("delete", "create"):
            return Deleted() if until == "delete" else Created()
        for meant, words in (("delete", GONE), ("create", MADE)):
            if until.lower() in words:
                raise ValueError(f'no condition is called "{until}"; did you mean "{meant}"?')
        return Condition(form, form, "True")
    status = next((each for each in STATUSES if each.lower() == rest.lower()), None)
    if status is None or not form:
        path = form if form.startswith((".", "{")) else f".status.{form}"
        raise ValueError(
            f'"{until}" is no condition, whose status is True, False or Unknown; '
            f'did you mean "jsonpath={{{path.strip("{}")}}}={rest}"?'
        )
    return Condition(f"{form}={status}", form, status)


def _checked(function: Callable[[Object], object]) -> Callable[[Object], object]:
    if inspect.iscoroutinefunction(function):
        raise TypeError("wait() takes a plain function, not a coroutine function")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some functions of C have none
        return function
    try:
        signature.bind({})
    except TypeError as error:
        raise TypeError(f"wait() calls the function with the object as its only argument: {error}") from None
    return function


def _field(text: str, rest: str) -> Field:
    """`{.status.phase}=Running`, also without braces or without a value."""
    # Saves start-up time: few tests wait for a field.
    from kubist.api.crd.jsonpath import JsonPath, PathError

    end = _end_of_path(rest)
    path, value = rest[:end].strip("'\""), rest[end:]
    if path.startswith("{"):
        path = path.strip("{}").strip()
    if not path or (value and not value.startswith("=")) or value == "=":
        raise ValueError(f'"{text}" is not of the form jsonpath={{.status.phase}}=Running')
    if path[0] not in ".[$@":
        path = f".{path}"
    try:
        return Field(text, JsonPath(path), value[1:] if value else None)
    except PathError as error:
        raise ValueError(f'"{text}" is no JSONPath: {error}') from None


def _end_of_path(text: str) -> int:
    """Position of the `=` before the value, which is not inside of brackets or quotes."""
    depth, quote = 0, ""
    for position, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in "[{(":
            depth += 1
        elif char in "]})":
            depth -= 1
        elif char == "=" and depth == 0:
            return position
    return len(text)


def _conditions(obj: Object) -> Any:
    return (obj.get("status") or {}).get("conditions") or ()


def _is_outdated(obj: Object, condition: Object) -> bool:
    """Whether the controller that set the condition has not seen the newest generation of the object."""
    observed = condition.get("observedGeneration", (obj.get("status") or {}).get("observedGeneration"))
    generation = obj["metadata"].get("generation")
    return isinstance(observed, int) and isinstance(generation, int) and observed < generation


def _failure(error: Exception) -> str:
    """Text of an exception of a function, with the line that raised it."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals is globals():
        trace = trace.tb_next
    while (
        trace is not None and trace.tb_next is not None and trace.tb_next.tb_frame.f_globals is not globals()
    ):
        trace = trace.tb_next
    line = f" ({Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno})" if trace else ""
    return f"{type(error).__name__}: {' '.join(str(error).split())}{line}"
