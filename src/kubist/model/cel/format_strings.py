"""`format` and `quote` of the strings library."""

from __future__ import annotations

import re
from typing import Any

from kubist.model.cel.errors import EvaluationError, NoSuchOverload
from kubist.model.cel.types import Type
from kubist.model.cel.values import Duration, Timestamp, check_size
from kubist.model.meta.numerals import go_float

MOST_DIGITS = 1100
"""Maximum precision. No double has more digits after the decimal point."""
_CLAUSE = re.compile(r"%(?:(%)|(?:\.(\d+))?([sdfebxXo])|(.?))", re.DOTALL)


def format_string(text: str, args: list[Any]) -> str:
    """printf with the verbs %s %d %f %e %b %x %X %o."""
    if not isinstance(text, str) or not isinstance(args, list):
        raise NoSuchOverload("format")
    values = iter(args)
    size = _Size()

    def clause(match: re.Match[str]) -> str:
        if match[1]:
            return "%"
        if not match[3]:
            raise EvaluationError(
                f'could not parse formatting clause: unrecognized formatting clause "{match[4]}"'
            )
        try:
            value = next(values)
        except StopIteration:
            raise EvaluationError(f"index {len(args)} out of range") from None
        precision = match[2].lstrip("0") or "0" if match[2] else "6"
        if len(precision) > len(str(MOST_DIGITS)) or int(precision) > MOST_DIGITS:
            raise EvaluationError(f"could not parse formatting clause: precision exceeds {MOST_DIGITS}")
        return _formatted(match[3], int(precision), value, size)

    return _CLAUSE.sub(clause, text)


class _Size:
    """Number of characters that one call has produced."""

    def __init__(self) -> None:
        self._made = 0

    def counted(self, text: str) -> str:
        self._made += len(text) + 10
        check_size(self._made)
        return text


def _formatted(kind: str, precision: int, value: Any, size: _Size) -> str:
    integer = isinstance(value, int) and not isinstance(value, bool)
    match kind:
        case "s":
            return _text(value, size)
        case "d" if integer:
            return str(int(value))
        case "f" if isinstance(value, float) or value in _ODD:
            return f"{float(value):,.{precision}f}"
        case "e" if isinstance(value, float) or value in _ODD:
            mantissa, _, exponent = f"{float(value):e}".partition("e")
            return f"{mantissa}\xd710{exponent.removeprefix('+').translate(_SUPERSCRIPT)}"
        case "b" if integer or isinstance(value, bool):
            return f"{int(value):b}"
        case "x" | "X":
            if isinstance(value, str):
                value = value.encode()
            digits = value.hex() if isinstance(value, bytes) else f"{int(value):x}" if integer else None
            if digits is not None:
                return size.counted(digits.upper() if kind == "X" else digits)
        case "o" if integer:
            return f"{int(value):o}"
    raise EvaluationError(f"error during formatting: %{kind} clause does not take such a value")


_ODD = ("NaN", "Infinity", "-Infinity")
_SUPERSCRIPT = str.maketrans("0123456789-", "\u2070\xb9\xb2\xb3\u2074\u2075\u2076\u2077\u2078\u2079\u207b")
_NO_FORMAT = "error during formatting: no formatting function for such a value"


def _text(value: Any, size: _Size) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return size.counted(value)
        case int():
            return size.counted(str(int(value)))
        case float():
            return go_float(value)
        case bytes():
            return size.counted(value.decode(errors="replace"))
        case list():
            size.counted("")
            return f"[{', '.join(_inner(item, size) for item in value)}]"
        case dict():
            size.counted("")
            pairs = sorted((_inner(key, size), _inner(inner, size)) for key, inner in value.items())
            return f"{{{', '.join(f'{key}:{inner}' for key, inner in pairs)}}}"
        case Timestamp() | Duration() | Type():
            return str(value)
    raise EvaluationError(_NO_FORMAT)


def _inner(value: Any, size: _Size) -> str:
    """A value inside a list or map, in a form that shows its type."""
    match value:
        case str():
            return size.counted(quote(value))
        case float():
            return f"{value:.6f}"
        case bytes():
            return size.counted("b" + quote(value.decode(errors="replace")))
        case Timestamp():
            return f'timestamp("{value}")'
        case Duration():
            return f'duration("{value}")'
        case Type():
            return f"type({value})"
    return _text(value, size)


_TAKES = {
    "d": ("int", "uint"),
    "f": ("double", "string"),
    "e": ("double", "string"),
    "b": ("bool", "int", "uint"),
    "x": ("int", "uint", "string", "bytes"),
    "X": ("int", "uint", "string", "bytes"),
    "o": ("int", "uint"),
}


def format_problem(text: str, types: list[Type]) -> str:
    """Error of a format string for arguments of these types; empty if it is valid."""
    used = 0
    for match in _CLAUSE.finditer(text):
        if match[1]:
            continue
        if not match[3]:
            return f'could not parse formatting clause: unrecognized formatting clause "{match[4]}"'
        if used >= len(types):
            return f"index {used} out of range"
        kind = types[used].kind
        if match[3] in _TAKES and kind not in (*_TAKES[match[3]], "dyn"):
            return f"error during formatting: %{match[3]} clause does not take a {types[used]}"
        if match[3] == "s" and kind in ("object", "opaque"):
            return f"error during formatting: %s clause does not take a {types[used]}"
        used += 1
    if len(types) > used:
        return f"too many arguments supplied to string.format (expected {used}, got {len(types)})"
    return ""


_QUOTED = {
    "\a": r"\a",
    "\b": r"\b",
    "\f": r"\f",
    "\n": r"\n",
    "\r": r"\r",
    "\t": r"\t",
    "\v": r"\v",
    "\\": r"\\",
    '"': r"\"",
}


def quote(text: str) -> str:
    return '"' + "".join(_QUOTED.get(char, char) for char in text) + '"'
