"""Functions of templates: those of text/template and those that KWOK adds. `sprig.py` has the others."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import orjson

from kubist.cluster.simulation.stages.gotemplate import printf, sprig, values
from kubist.cluster.simulation.stages.gotemplate.function import ANY, Function
from kubist.cluster.simulation.stages.limits import StageError, check_size
from kubist.model.codec import yaml
from kubist.model.meta import times

if TYPE_CHECKING:
    from kubist.cluster.simulation.stages.gotemplate.nodes import State

_CONDITIONS = (
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("NetworkUnavailable", "False", "RouteCreated", "RouteController created a route"),
)
"""Conditions of a healthy node: type, status, reason, message."""


def _quote(value: Any) -> str:
    """`Quote`: the JSON text of a value as a string literal."""
    if isinstance(value, str) and not isinstance(value, values.Number):
        return values.quoted(value)
    return values.quoted(orjson.dumps(values.plain(value)).decode())


def _yaml(value: Any, indent: Any = 0) -> str:
    """`YAML`: a value as YAML. With an indent, every line starts with twice as many spaces, and a line break comes
    first."""
    text = yaml.dumps(values.plain(value)).decode()
    levels = values.integer(indent, "YAML")
    if levels <= 0:
        return text
    check_size(levels)
    check_size(len(text) + (text.count("\n") + 1) * levels * 2)
    return f"\n{text}".replace("\n", "\n" + " " * levels * 2)


def node_conditions() -> list[dict[str, Any]]:
    """`NodeConditions`: conditions of a healthy node."""
    names = ("type", "status", "reason", "message")
    empty = {"lastHeartbeatTime": None, "lastTransitionTime": None}
    return [{**dict(zip(names, row, strict=True)), **empty} for row in _CONDITIONS]


def moment(seconds: float) -> str:
    """Unix time as RFC 3339, with microseconds."""
    whole = int(seconds)
    return times.format_micro_time(whole, int((seconds - whole) * 1e6))


def _now(state: State) -> str:
    return moment(state.environment.now)


def _started(state: State) -> str:
    return moment(state.environment.started)


def _version(state: State) -> str:
    return state.environment.version


def _length(value: Any) -> int:
    if isinstance(value, str | list | dict):
        return len(value.encode()) if isinstance(value, str) else len(value)
    raise StageError(f"{values.described(value)} has no length")


def _slice(value: Any, *bounds: Any) -> Any:
    if not isinstance(value, str | list) or isinstance(value, values.Number):
        raise StageError(f"cannot slice {values.described(value)}")
    numbers = [values.integer(bound, "slice") for bound in bounds]
    first = numbers[0] if numbers else 0
    last = numbers[1] if len(numbers) > 1 else len(value)
    if not 0 <= first <= last <= len(value):
        raise StageError(f"the index {last} is out of range, the length is {len(value)}")
    return value[first:last]


def _decided(*_arguments: Any) -> Any:
    raise StageError("and, or are part of the syntax")


_ALL = (
    # `and` and `or` are computed by the call itself, because they do not evaluate all arguments.
    Function("and", _decided, 1, ANY),
    Function("or", _decided, 1, ANY),
    Function("not", lambda value: not values.truth(value), 1, 1),
    Function("eq", values.equal, 1, ANY),
    Function("ne", lambda a, b: not values.equal(a, b), 2, 2),
    Function("lt", values.compare("lt", operator.lt), 2, 2),
    Function("le", values.compare("le", operator.le), 2, 2),
    Function("gt", values.compare("gt", operator.gt), 2, 2),
    Function("ge", values.compare("ge", operator.ge), 2, 2),
    Function("len", _length, 1, 1),
    Function("index", values.index, 1, ANY),
    Function("slice", _slice, 1, 3),
    Function("print", printf.sprint, 0, ANY, walks=True),
    Function("println", printf.sprintln, 0, ANY, walks=True),
    Function("printf", printf.printf, 1, ANY, walks=True),
    Function("Quote", _quote, 1, 1, walks=True),
    Function("YAML", _yaml, 1, 2, walks=True),
    Function("Now", _now, 0, 0, with_state=True),
    Function("StartTime", _started, 0, 0, with_state=True),
    Function("Version", _version, 0, 0, with_state=True),
    Function("NodeConditions", node_conditions, 0, 0),
    *(function for function in sprig.FUNCTIONS if function.name != "slice"),
)
FUNCTIONS: dict[str, Function] = {function.name: function for function in _ALL}
