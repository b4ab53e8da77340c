"""Regular expressions of CRD schemas and CEL: RE2 syntax, linear time for every pattern."""

from __future__ import annotations

from typing import Any

import re2  # type: ignore[import-untyped]

from kubist.caching import ComputedCache
from kubist.offload import leave_loop


class RegexError(ValueError):
    """Invalid pattern."""


_options = re2.Options()
_options.log_errors = False


def _compile(pattern: str) -> Any:
    try:
        return re2.compile(pattern, options=_options)
    except re2.error as error:
        text = error.args[0] if error.args else ""
        message = text.decode(errors="replace") if isinstance(text, bytes) else str(text)
        raise RegexError(f"error parsing regexp: {_in_go(message, pattern)}") from None


_compiled: ComputedCache[str, Any] = ComputedCache(_compile, entries=512, key_length=1024)
compile = _compiled.__getitem__
"""Compiled pattern. RegexError if it is invalid."""

_SHORT = 200
"""Longest pattern that is compiled in less than a millisecond, unless it repeats something."""


def compile_aside(pattern: str) -> Any:
    """The same, for code that is started again in the worker if it raises `offload.Lengthy`. RE2 needs up to 80 ms for
    a pattern such as `\\p{L}{1,1000}`, and an object may need hundreds of them."""
    if pattern not in _compiled and (len(pattern) > _SHORT or "{" in pattern):
        leave_loop()
    return compile(pattern)


_GO = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}


def _in_go(message: str, pattern: str) -> str:
    """RE2's error message in the words of Go's regexp package, which has the same syntax."""
    what, _, where = message.partition(": ")
    if where in ("(?<=", "(?<!"):  # Go reads these as the start of a group name
        group, end, _ = pattern[pattern.index(where) :].partition(">")
        return f"invalid named capture: `{group}{end}`"
    return f"{_GO.get(what, what)}: `{where}`"
