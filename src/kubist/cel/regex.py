"""Regular expressions of CRD schemas and CEL: RE2 syntax, linear time for every pattern."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import re2  # type: ignore[import-untyped]

from kubist.caching import bounded_cache


class RegexError(ValueError):
    """Invalid pattern."""


_options = re2.Options()
_options.log_errors = False


@bounded_cache(entries=512, key_length=1024)
def compile(pattern: str) -> Any:
    try:
        return re2.compile(pattern, options=_options)
    except re2.error as error:
        text = error.args[0] if error.args else ""
        message = text.decode(errors="replace") if isinstance(text, bytes) else str(text)
        raise RegexError(f"error parsing regexp: {_in_go(message, pattern)}") from None


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


def searcher(pattern: str) -> Callable[[str], Any]:
    """Search function of a pattern, for any position in a text."""
    found: Callable[[str], Any] = compile(pattern).search
    return found
