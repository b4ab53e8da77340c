"""`format` and `quote` of the strings library."""

from __future__ import annotations

import re
from typing import Any

from kubist.crd.cel.errors import EvaluationError, NoSuchOverload
from kubist.crd.cel.values import Duration, Timestamp
from kubist.crd.columns import go_float

_CLAUSE = re.compile(r"%(?:(%)|(?:\.(\d+))?([sdfebxXo])|(.?))", re.DOTALL)


def format_string(text: str, args: list[Any]) -> str:
    """printf, with %s %d %f %e %b %x %X %o."""
    if not isinstance(text, str) or not isinstance(args, list):
        raise NoSuchOverload("format")
    given = iter(args)

    def clause(match: re.Match[str]) -> str:
        if match[1]:
            return "%"
        if not match[3]:
            raise EvaluationError(
                f'could not parse formatting clause: unrecognized formatting clause "{match[4]}"'
            )
        try:
            value = next(given)
        except StopIteration:
            raise EvaluationError(f"index {len(args)} out of range") from None
        return _formatted(match[3], int(match[2]) if match[2] else 6, value)

    return _CLAUSE.sub(clause, text)


def _formatted(kind: str, precision: int, value: Any) -> str:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    integer = isinstance(value, int) and not isinstance(value, bool)
    match kind:
        case "s":
            return _text(value)
        case "d" if integer:
            return str(int(value))
        case "d" if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
            return go_float(value).replace("Inf", "Infinity").removeprefix("+")
        case "f" if number:
            return f"{value:.{precision}f}"
        case "e" if number:
            return f"{float(value):.{precision}e}"
        case "b" if integer or isinstance(value, bool):
            return f"{int(value):b}"
        case "x" | "X":
            if isinstance(value, str):
                value = value.encode()
            shown = value.hex() if isinstance(value, bytes) else f"{int(value):x}" if integer else None
            if shown is not None:
                return shown.upper() if kind == "X" else shown
        case "o" if integer:
            return f"{int(value):o}"
    raise EvaluationError(f"error during formatting: %{kind} clause does not take such a value")


def _text(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case int():
            return str(int(value))
        case float():
            return go_float(value).replace("+Inf", "Infinity").replace("-Inf", "-Infinity")
        case bytes():
            return value.decode(errors="replace")
        case list():
            return f"[{', '.join(map(_text, value))}]"
        case dict():
            pairs = sorted((_text(key), _text(inner)) for key, inner in value.items())
            return f"{{{', '.join(f'{key}: {inner}' for key, inner in pairs)}}}"
        case Timestamp() | Duration():
            return str(value)
    raise EvaluationError("error during formatting: no formatting function for such a value")


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
