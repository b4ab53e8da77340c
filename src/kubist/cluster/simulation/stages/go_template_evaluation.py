"""Evaluation of parsed Go templates: values, the functions of text/template, KWOK and sprig that Stages use, actions.

nil and a missing key are None. Numbers of the data are `Number`, because KWOK decodes them to json.Number, which is a
string type: `eq .spec.replicas "3"` holds, and zero counts as true.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import orjson

from kubist.cluster.simulation.stages.limits import MAX_SIZE, Budget, StageError, check_size, unsupported
from kubist.model.codec import yaml
from kubist.model.meta import times

ANY = 1000
"""Maximum number of arguments of a function that takes any number."""
_VERB = re.compile(r"%([sdvqt%]|[^A-Za-z%]*+.?)", re.DOTALL)
"""Verb of printf: its letter, else an unsupported one with flags, width and precision."""
_CONDITIONS = (
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("NetworkUnavailable", "False", "RouteCreated", "RouteController created a route"),
)
"""Conditions of a healthy node: type, status, reason, message."""


# Nodes of a parsed template

DOT = -1


class Constant(NamedTuple):
    value: Any


class Variable(NamedTuple):
    number: int
    """The parser gives each declaration its number. `$` has 0, and `.` has DOT."""


class Fields(NamedTuple):
    """`.a.b` of an operand."""

    target: Expression
    names: list[str]


class Call(NamedTuple):
    name: str
    arguments: list[Expression]


class Pipeline(NamedTuple):
    """Each call gets the value of the one before as its last argument."""

    first: Expression
    calls: list[Call]


Expression = Constant | Variable | Fields | Call | Pipeline


class Action(NamedTuple):
    line: int
    keyword: str
    """`if`, `with`, `range`, `set` or `print`."""
    value: Expression
    variables: list[int]
    """Variables that get the value, or with `range` each key and item."""
    body: Block
    otherwise: Block


Block = list[str | Action]


# Values


class Number(str):
    """Number of the data, in its text form."""

    __slots__ = ()

    def value(self) -> int | float:
        return float(self) if any(char in self for char in ".eE") else int(self)


def plain(value: Any) -> Any:
    """Value without `Number`, for YAML and JSON."""
    if isinstance(value, Number):
        return value.value()
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


def kind_of(value: Any) -> str:
    """Go's kind of a value."""
    if value is None:
        return "invalid"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int"
    if isinstance(value, str):
        return "string"
    return "slice" if isinstance(value, list) else "map"


def text_of(value: Any) -> str:
    """Value as Go's %v prints it."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{' '.join(text_of(item) for item in value)}]"
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{text_of(value[key])}' for key in sorted(value))}]"
    return str(value)


def description_of(value: Any) -> str:
    if value is None:
        return "nil"
    text = text_of(value)
    return f"{kind_of(value)} {text if len(text) <= 40 else text[:37] + '...'}"


def literal_of(text: str) -> str:
    """String literal of Go and YAML."""
    return json.dumps(text, ensure_ascii=False)


def field_of(value: Any, name: str) -> Any:
    """`.name` of a value."""
    if value is not None and not isinstance(value, dict):
        raise StageError(f"cannot take the field {name} of {description_of(value)}")
    return value.get(name) if value else None


def pairs(value: Any) -> list[tuple[Any, Any]]:
    """Keys and items that `range` goes through."""
    if isinstance(value, dict):
        return [(key, value[key]) for key in sorted(value)]
    if value is not None and not isinstance(value, list):
        raise StageError(f"range cannot go through {description_of(value)}")
    return list(enumerate(value or ()))


# Functions


def call(
    name: str, arguments: list[Any], environment: Mapping[str, Callable[..., Any]], budget: Budget
) -> Any:
    """Result of a function of FUNCTIONS or `environment`."""
    run, least, most = FUNCTIONS.get(name) or (environment[name], 0, ANY)
    if not least <= len(arguments) <= most:
        number = f"{least}" if least == most else f"at least {least}"
        raise StageError(f"{name}: wrong number of arguments: want {number}, got {len(arguments)}")
    if name in _WALKING:
        budget.spend_on(arguments)
    try:
        result = run(*arguments)
    except StageError as error:
        raise StageError(f"{name}: {error}") from None
    except (TypeError, ValueError, AttributeError, OverflowError):
        raise StageError(f"{name}: cannot use these arguments") from None
    if isinstance(result, str):
        check_size(len(result))
    return result


def _equal(first: Any, *others: Any) -> bool:
    if not others:
        raise StageError("missing argument for comparison")
    return any(_same(first, other) for other in others)


def _same(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return a is b
    if isinstance(a, list | dict) or isinstance(b, list | dict):
        raise StageError(f"{description_of(a)} and {description_of(b)} cannot be compared")
    first, second = _comparable(a, b)
    return bool(first == second)


def _comparable(a: Any, b: Any) -> tuple[Any, Any]:
    """Both operands as values of one type. A number of the data compares with integers and with strings."""
    if isinstance(a, Number) and kind_of(b) == "int":
        return a.value(), b
    if isinstance(b, Number) and kind_of(a) == "int":
        return a, b.value()
    if kind_of(a) != kind_of(b):
        raise StageError(f"incompatible types for comparison: {description_of(a)} and {description_of(b)}")
    return a, b


def _order(test: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """lt, le, gt or ge."""

    def run(a: Any, b: Any) -> bool:
        if kind_of(a) not in ("int", "string") or kind_of(b) not in ("int", "string"):
            raise StageError(f"{description_of(a)} and {description_of(b)} have no order")
        if isinstance(a, Number) and isinstance(b, Number):
            return test(a.value(), b.value())
        return test(*_comparable(a, b))

    return run


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise StageError(f"expected an integer but got {description_of(value)}")
    return value


def _index(value: Any, *keys: Any) -> Any:
    for key in keys:
        if isinstance(value, dict):
            if not isinstance(key, str) or isinstance(key, Number):
                raise StageError(f"expected a string but got {description_of(key)}")
            value = value.get(key)
        elif isinstance(value, list):
            at = _integer(key)
            if not 0 <= at < len(value):
                raise StageError(f"the index {at} is out of range, the length is {len(value)}")
            value = value[at]
        else:
            raise StageError(f"cannot index {description_of(value)}")
    return value


def _length(value: Any) -> int:
    if not isinstance(value, str | list | dict):
        raise StageError(f"{description_of(value)} has no length")
    return len(value.encode()) if isinstance(value, str) else len(value)


def check_layout(layout: str) -> None:
    """Rejects the first argument of printf if it has an unsupported verb."""
    for match in _VERB.finditer(layout):
        if match[1] not in tuple("sdvqt%"):
            raise unsupported(f"the verb {match[0]} of printf")


def _printf(layout: Any, *arguments: Any) -> str:
    if not isinstance(layout, str):
        raise StageError("the first argument must be a string")
    check_layout(layout)
    rest = list(arguments)

    def formatted(match: re.Match[str]) -> str:
        if match[1] == "%":
            return "%"
        return _formatted(match[1], rest.pop(0)) if rest else f"%!{match[1]}(MISSING)"

    text = _VERB.sub(formatted, layout)
    extra = ", ".join(f"{kind_of(value)}={text_of(value)}" for value in rest)
    return f"{text}%!(EXTRA {extra})" if rest else text


def _formatted(verb: str, value: Any) -> str:
    kinds = {"s": ("string", "slice", "map"), "d": ("int",), "q": ("string",), "t": ("bool",)}
    kind = kind_of(value)
    if verb == "v" or kind in kinds[verb]:
        return literal_of(value) if verb == "q" else text_of(value)
    return f"%!{verb}(<nil>)" if value is None else f"%!{verb}({kind}={text_of(value)})"


def _quote(value: Any) -> str:
    """`Quote`: the JSON text of a value as a string literal."""
    if isinstance(value, str) and not isinstance(value, Number):
        return literal_of(value)
    return literal_of(orjson.dumps(plain(value)).decode())


def _quotes(*values: Any) -> str:
    """`quote` of sprig: every value as a string literal."""
    return " ".join(literal_of(text_of(value)) for value in values if value is not None)


def _yaml(value: Any, indent: Any = 0) -> str:
    """`YAML`: a value as YAML. With an indent, every line starts with twice as many spaces, and a line break comes
    first."""
    text = yaml.dumps(plain(value)).decode()
    levels = _integer(indent)
    if levels <= 0:
        return text
    check_size(levels)
    check_size(len(text) + (text.count("\n") + 1) * levels * 2)
    return f"\n{text}".replace("\n", "\n" + " " * levels * 2)


def _dict(*items: Any) -> dict[str, Any]:
    """Map of alternating keys and values. A last key without a value gets an empty string."""
    values = (*items[1::2], "")
    return {text_of(key): value for key, value in zip(items[::2], values, strict=False)}


def _default(fallback: Any, *value: Any) -> Any:
    return value[0] if value and value[0] else fallback


def node_conditions() -> list[dict[str, Any]]:
    """`NodeConditions`: conditions of a healthy node."""
    names = ("type", "status", "reason", "message")
    empty = {"lastHeartbeatTime": None, "lastTransitionTime": None}
    return [{**dict(zip(names, row, strict=True)), **empty} for row in _CONDITIONS]


FUNCTIONS: dict[str, tuple[Callable[..., Any], int, int]] = {
    "Quote": (_quote, 1, 1),
    "YAML": (_yaml, 1, 2),
    "NodeConditions": (node_conditions, 0, 0),
    "not": (operator.not_, 1, 1),
    "eq": (_equal, 1, ANY),
    "ne": (lambda a, b: not _equal(a, b), 2, 2),
    "lt": (_order(operator.lt), 2, 2),
    "le": (_order(operator.le), 2, 2),
    "gt": (_order(operator.gt), 2, 2),
    "ge": (_order(operator.ge), 2, 2),
    "len": (_length, 1, 1),
    "index": (_index, 1, ANY),
    "printf": (_printf, 1, ANY),
    "default": (_default, 1, 2),
    "dict": (_dict, 0, ANY),
    "quote": (_quotes, 0, ANY),
}
"""Functions with their minimum and maximum number of arguments."""
_WALKING = frozenset(("Quote", "YAML", "printf", "dict", "quote"))
"""Functions that go through everything in their arguments, which costs steps."""
LAZY = frozenset(("and", "or"))
"""Functions that do not evaluate all their arguments. `go_template` computes them."""
NAMES = frozenset((*FUNCTIONS, *LAZY, "Now", "StartTime", "Version"))
"""Functions of all templates."""


def environment(now: float, started: float, version: str) -> dict[str, Callable[..., Any]]:
    """Functions about the time and the server. `now` and `started` are Unix times."""
    moments = {"Now": _moment(now), "StartTime": _moment(started), "Version": version}
    return {name: lambda text=text: text for name, text in moments.items()}


def _moment(seconds: float) -> str:
    """Unix time as RFC 3339, with microseconds."""
    whole = int(seconds)
    return times.format_micro_time(whole, int((seconds - whole) * 1e6))


# Actions


class Rendering:
    """Output and variables of one evaluation."""

    def __init__(self, data: Any, environment: Mapping[str, Callable[..., Any]]) -> None:
        self.output: list[str] = []
        self._size = 0
        self._budget = Budget()
        self._environment = environment
        self._variables: dict[int, Any] = {0: data}

    def run(self, block: Block, dot: Any) -> None:
        for part in block:
            self._budget.spend()
            if isinstance(part, str):
                self._write(part)
            else:
                self._act(part, dot)

    def _write(self, text: str) -> None:
        self._size += len(text)
        if self._size > MAX_SIZE:
            raise StageError(f"the output has more than {MAX_SIZE} characters")
        self.output.append(text)

    def _act(self, action: Action, dot: Any) -> None:
        line, keyword, expression, variables, body, otherwise = action
        try:
            value = self._value(expression, dot)
            items = pairs(value) if keyword == "range" else []
            if keyword == "print":
                self._budget.spend_on(value)
                self._write("<no value>" if value is None else text_of(value))
        except StageError as error:
            raise on_line(error, line) from None
        if keyword == "range":
            for pair in items:
                self._variables.update(zip(variables, pair[-len(variables) :], strict=False))
                self.run(body, pair[1])
        else:
            self._variables.update(zip(variables, (value,), strict=False))
            if value:
                self.run(body, value if keyword == "with" else dot)
        if not (items or value):
            self.run(otherwise, dot)

    def _value(self, expression: Expression, dot: Any) -> Any:
        match expression:
            case Constant(value):
                return value
            case Variable(number):
                return dot if number == DOT else self._variables.get(number)
            case Fields(target, names):
                value = self._value(target, dot)
                for name in names:
                    self._budget.spend()
                    value = field_of(value, name)
                return value
            case Pipeline(first, calls):
                value = self._value(first, dot)
                for following in calls:
                    value = self._call(following, dot, value)
                return value
            case Call():
                return self._call(expression, dot)

    def _call(self, node: Call, dot: Any, *piped: Any) -> Any:
        name, arguments = node
        self._budget.spend()
        if name not in LAZY:
            values = [*(self._value(argument, dot) for argument in arguments), *piped]
            return call(name, values, self._environment, self._budget)
        if not arguments and not piped:
            raise StageError(f"{name}: an argument is missing")
        result: Any = None
        for argument in arguments:
            result = self._value(argument, dot)
            if bool(result) == (name == "or"):
                return result
        return piped[0] if piped else result


def on_line(error: StageError, line: int) -> StageError:
    text = str(error)
    return error if text.startswith("line ") else StageError(f"line {line}: {text}")
