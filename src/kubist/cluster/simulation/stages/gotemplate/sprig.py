"""Functions of the sprig library: text, numbers, lists, dictionaries, defaults, encodings, random values."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
import re
import string
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kubist.cluster.simulation.stages.gotemplate import values
from kubist.cluster.simulation.stages.gotemplate.collections import FUNCTIONS as COLLECTIONS
from kubist.cluster.simulation.stages.gotemplate.function import ANY, Function
from kubist.cluster.simulation.stages.gotemplate.values import Number, integer, shown, text_of, truth
from kubist.cluster.simulation.stages.limits import StageError, check_size
from kubist.model.cel import regex

if TYPE_CHECKING:
    from kubist.cluster.simulation.stages.gotemplate.nodes import State

_INT64 = 1 << 63
_HTML = str.maketrans({char: f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"})
"""Characters that Go's JSON encoder escapes."""
_WORD = re.compile(r"(?<![\w])\w")


# Numbers


def _int(value: Any) -> int:
    """Number of any value; 0 if it has none."""
    try:
        if isinstance(value, Number):
            return _wrapped(int(value.value()))
        if isinstance(value, str):
            return _parsed_int(value)
        if isinstance(value, bool | int | float):
            return _wrapped(int(value))
    except (ValueError, OverflowError):
        pass
    return 0


def _parsed_int(text: str) -> int:
    """Number of a text in Go's syntax, where a leading zero means octal."""
    if len(text) > 40 or any(char.isspace() for char in text):
        return 0
    digits = text.lstrip("+-")
    if digits.isdecimal() and digits.startswith("0"):
        return _wrapped(int(text, 8))
    return _wrapped(int(text, 0))


def _float(value: Any) -> float:
    try:
        if isinstance(value, Number):
            return float(value.value())
        if isinstance(value, str | bool | int | float):
            return float(value)
    except (ValueError, OverflowError):
        pass
    return 0.0


def _wrapped(value: int) -> int:
    """Value as a signed number of 64 bits."""
    return (value + _INT64) % (2 * _INT64) - _INT64


def _folded(operate: Callable[[int, int], int]) -> Callable[..., int]:
    def run(first: Any, *others: Any) -> int:
        found = _int(first)
        for other in others:
            found = _wrapped(operate(found, _int(other)))
        return found

    return run


def _divide(a: Any, b: Any) -> int:
    dividend, divisor = _int(a), _int(b)
    if divisor == 0:
        raise StageError("the divisor is zero")
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


def _modulo(a: Any, b: Any) -> int:
    dividend, divisor = _int(a), _int(b)
    if divisor == 0:
        raise StageError("the divisor is zero")
    return (
        int(math.fmod(dividend, divisor)) if abs(dividend) < 1 << 52 else dividend - divisor * _divide(a, b)
    )


def _round(value: Any, places: Any) -> float:
    digits = _int(places)
    if abs(digits) > 100:
        raise StageError("the number of digits must be from -100 to 100")
    factor = 10.0**digits
    scaled = _float(value) * factor
    if not math.isfinite(scaled):
        return _float(value)
    return math.copysign(math.floor(abs(scaled) + 0.5) / factor, scaled)


def _until(state: State, *bounds: Any) -> list[int]:
    """`until n` and `untilStep from to step`."""
    start, stop, step = (0, _int(bounds[0]), 1) if len(bounds) == 1 else map(_int, bounds)
    if len(bounds) == 1 and stop < 0:
        step = -1
    if step == 0 or (stop - start) * step <= 0:
        return []
    numbers = range(start, stop, step)
    state.budget.spend(len(numbers))
    return list(numbers)


# Text


def _text(function: str, run: Callable[..., Any], count: int) -> Function:
    """Function whose arguments are strings."""
    return Function(
        function, lambda *given: run(*(text_of(value, function) for value in given)), count, count
    )


def _replace(old: str, new: str, text: str) -> str:
    check_size(len(text) + text.count(old) * len(new))
    return text.replace(old, new)


def _repeat(count: Any, text: Any) -> str:
    times, found = integer(count, "repeat"), text_of(text, "repeat")
    if times < 0:
        raise StageError("the count is negative")
    check_size(times)
    check_size(times * len(found))
    return found * times


def _substring(start: Any, end: Any, text: Any) -> str:
    first, last, found = integer(start, "substr"), integer(end, "substr"), text_of(text, "substr")
    if first < 0:
        return found[: max(last, 0)]
    return found[first:] if last < 0 or last > len(found) else found[first:last]


def _truncated(count: Any, text: Any) -> str:
    length, found = integer(count, "trunc"), text_of(text, "trunc")
    return found[:length] if length >= 0 else found[length:]


def _indented(count: Any, text: Any) -> str:
    spaces, found = integer(count, "indent"), text_of(text, "indent")
    if spaces < 0:
        raise StageError("the number of spaces is negative")
    check_size(spaces)
    check_size(len(found) + (found.count("\n") + 1) * spaces)
    pad = " " * spaces
    return pad + found.replace("\n", "\n" + pad)


def _joined(separator: Any, items: Any) -> str:
    between = text_of(separator, "join")
    found = items if isinstance(items, list) else [items]
    parts = [shown(item) for item in found if item is not None]
    check_size(sum(map(len, parts)) + len(between) * len(parts))
    return between.join(parts)


def _search(pattern: str, text: str) -> Any:
    try:
        return regex.compile(pattern).search(text)
    except regex.RegexError as error:
        raise StageError(str(error)) from None


def _found(pattern: str, text: str) -> str:
    match = _search(pattern, text)
    return match.group() if match else ""


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode(errors="replace")
    except (binascii.Error, ValueError) as error:
        return str(error)


def _json(value: Any) -> str:
    text = json.dumps(values.plain(value), ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return text.translate(_HTML)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _quotes(mark: str) -> Callable[..., str]:
    def run(*given: Any) -> str:
        texts = [shown(value) for value in given if value is not None]
        return " ".join(values.quoted(text) if mark == '"' else f"'{text}'" for text in texts)

    return run


def _fail(message: Any) -> Any:
    raise StageError(shown(message)[:200])


# Random values


def _random_number(state: State, least: Any, limit: Any) -> int:
    first, last = integer(least, "randInt"), integer(limit, "randInt")
    if first >= last:
        raise StageError("the first number must be less than the second")
    return state.environment.random.randrange(first, last)


def _random_text(alphabet: str) -> Callable[..., str]:
    def run(state: State, count: Any) -> str:
        length = integer(count, "count")
        check_size(length)
        state.budget.spend(max(length, 0))
        return "".join(state.environment.random.choices(alphabet, k=max(length, 0)))

    return run


def _uuid(state: State) -> str:
    return str(uuid.UUID(int=state.environment.random.getrandbits(128), version=4))


def _default(fallback: Any, *given: Any) -> Any:
    return given[0] if given and truth(given[0]) else fallback


def _coalesce(*given: Any) -> Any:
    return next((value for value in given if truth(value)), None)


def _ternary(yes: Any, no: Any, condition: Any) -> Any:
    if not isinstance(condition, bool):
        raise StageError(f"the last argument must be true or false, not {values.described(condition)}")
    return yes if condition else no


FUNCTIONS = (
    Function("default", _default, 1, 2),
    Function("empty", lambda value: not truth(value), 1, 1),
    Function("coalesce", _coalesce, 1, ANY),
    Function("ternary", _ternary, 3, 3),
    Function("fail", _fail, 1, 1),
    Function("kindOf", values.kind_of, 1, 1),
    Function("kindIs", lambda kind, value: values.kind_of(value) == kind, 2, 2),
    Function("int", _int, 1, 1),
    Function("int64", _int, 1, 1),
    Function("atoi", _int, 1, 1),
    Function("float64", _float, 1, 1),
    Function("add", _folded(lambda a, b: a + b), 1, ANY),
    Function("add1", lambda value: _wrapped(_int(value) + 1), 1, 1),
    Function("sub", _folded(lambda a, b: a - b), 2, 2),
    Function("mul", _folded(lambda a, b: a * b), 1, ANY),
    Function("div", _divide, 2, 2),
    Function("mod", _modulo, 2, 2),
    Function("max", _folded(max), 1, ANY),
    Function("min", _folded(min), 1, ANY),
    Function("floor", lambda value: float(math.floor(_bounded(value))), 1, 1),
    Function("ceil", lambda value: float(math.ceil(_bounded(value))), 1, 1),
    Function("round", _round, 2, 2),
    Function("until", _until, 1, 1, with_state=True),
    Function("untilStep", _until, 3, 3, with_state=True),
    _text("upper", str.upper, 1),
    _text("lower", str.lower, 1),
    _text("title", lambda text: _WORD.sub(lambda found: found.group().upper(), text), 1),
    _text("trim", str.strip, 1),
    _text("trimAll", lambda chars, text: text.strip(chars) if chars else text, 2),
    _text("trimPrefix", lambda prefix, text: text.removeprefix(prefix), 2),
    _text("trimSuffix", lambda suffix, text: text.removesuffix(suffix), 2),
    _text("nospace", lambda text: "".join(text.split()), 1),
    _text("replace", _replace, 3),
    _text("contains", lambda part, text: part in text, 2),
    _text("hasPrefix", lambda prefix, text: text.startswith(prefix), 2),
    _text("hasSuffix", lambda suffix, text: text.endswith(suffix), 2),
    _text("splitList", lambda separator, text: text.split(separator) if separator else list(text), 2),
    _text("regexMatch", lambda pattern, text: _search(pattern, text) is not None, 2),
    _text("regexFind", _found, 2),
    _text("b64enc", lambda text: base64.b64encode(text.encode()).decode(), 1),
    _text("b64dec", _decoded, 1),
    _text("sha256sum", lambda text: hashlib.sha256(text.encode()).hexdigest(), 1),
    _text("fromJson", _parsed, 1),
    Function("repeat", _repeat, 2, 2),
    Function("substr", _substring, 3, 3),
    Function("trunc", _truncated, 2, 2),
    Function("indent", _indented, 2, 2),
    Function("nindent", lambda count, text: "\n" + _indented(count, text), 2, 2),
    Function("join", _joined, 2, 2, walks=True),
    Function("quote", _quotes('"'), 0, ANY, walks=True),
    Function("squote", _quotes("'"), 0, ANY, walks=True),
    Function(
        "cat",
        lambda *given: " ".join(shown(value) for value in given if value is not None),
        0,
        ANY,
        walks=True,
    ),
    Function("toString", shown, 1, 1, walks=True),
    Function("toJson", _json, 1, 1, walks=True),
    Function("randInt", _random_number, 2, 2, with_state=True),
    Function("randAlphaNum", _random_text(string.ascii_letters + string.digits), 1, 1, with_state=True),
    Function("randAlpha", _random_text(string.ascii_letters), 1, 1, with_state=True),
    Function("randNumeric", _random_text(string.digits), 1, 1, with_state=True),
    Function("uuidv4", _uuid, 0, 0, with_state=True),
    *COLLECTIONS,
)


def _bounded(value: Any) -> float:
    number = _float(value)
    return number if math.isfinite(number) else 0.0
