"""printf and print as in Go's fmt package, for the verbs that templates use."""

from __future__ import annotations

import re
from typing import Any

from kubist.cluster.simulation.stages.gotemplate.values import Number, kind_of, quoted, shown
from kubist.cluster.simulation.stages.limits import StageError, check_size

_VERB = re.compile(r"%([-+# 0]*)(\d*)(?:\.(\d*))?(.?)", re.DOTALL)
_WIDEST = 1000
"""Maximum width and precision."""


def printf(layout: Any, *arguments: Any) -> str:
    if not isinstance(layout, str):
        raise StageError("printf: the first argument must be a string")
    left = list(arguments)
    made: list[str] = []
    at = 0
    for match in _VERB.finditer(layout):
        made.append(layout[at : match.start()])
        at = match.end()
        flags, width, precision, verb = match.groups()
        if verb == "%":
            made.append("%")
        elif not verb:
            made.append("%!(NOVERB)")
        elif not left:
            made.append(f"%!{verb}(MISSING)")
        else:
            made.append(_format(flags, width, precision, verb, left.pop(0)))
        check_size(sum(map(len, made)))
    made.append(layout[at:])
    if left:
        made.append(f"%!(EXTRA {', '.join(f'{kind_of(v)}={shown(v)}' for v in left)})")
    return "".join(made)


def _format(flags: str, width: str, precision: str | None, verb: str, value: Any) -> str:
    wide, places = int(width or 0), None if precision is None else int(precision or 0)
    if wide > _WIDEST or (places or 0) > _WIDEST:
        raise StageError(f"printf: a width or precision is more than {_WIDEST}")
    text = _converted(flags, places, verb, value)
    if len(text) >= wide:
        return text
    if "-" in flags:
        return text.ljust(wide)
    if "0" in flags and verb in "dxXofeg":
        return text.zfill(wide)
    return text.rjust(wide)


def _converted(flags: str, places: int | None, verb: str, value: Any) -> str:
    kind = kind_of(value)
    sign = "+" if "+" in flags else ""
    match verb:
        case "v":
            return shown(value)
        case "s" if kind in ("string", "slice", "map", "invalid") and value is not None:
            return shown(value)[:places]
        case "q" if kind == "string":
            return quoted(value)
        case "q" if kind == "int" and 0 <= value < 0x110000:
            return f"'{chr(value)}'"
        case "t" if kind == "bool":
            return shown(value)
        case "T":
            return {"invalid": "<nil>", "slice": "[]interface {}", "map": "map[string]interface {}"}.get(
                kind, kind
            )
        case "d" if kind == "int":
            return format(value, f"{sign}d")
        case "x" | "X" | "o" | "b" if kind == "int":
            return format(value, verb)
        case "x" | "X" if kind == "string" and not isinstance(value, Number):
            return (
                format(int.from_bytes(value.encode()), verb).zfill(2 * len(value.encode())) if value else ""
            )
        case "c" if kind == "int" and 0 <= value < 0x110000:
            return chr(value)
        case "f" | "F" | "e" | "g" if kind == "float64":
            return (
                format(value, f"{sign}.{6 if places is None else places}{verb}")
                if verb != "g"
                else shown(value)
            )
    if value is None:
        return f"%!{verb}(<nil>)"
    return f"%!{verb}({kind}={shown(value)})"


def sprint(*arguments: Any) -> str:
    """`print`: a space between two operands if neither is a string."""
    made = []
    for at, value in enumerate(arguments):
        if at and kind_of(value) != "string" and kind_of(arguments[at - 1]) != "string":
            made.append(" ")
        made.append(shown(value))
    return "".join(made)


def sprintln(*arguments: Any) -> str:
    return " ".join(map(shown, arguments)) + "\n"
