"""Regular expressions of CRD schemas and CEL: RE2 syntax, linear time for every pattern."""

from __future__ import annotations

from typing import Any

import re2  # type: ignore[import-untyped]

from kubist.base.caching import ComputedCache
from kubist.base.offload import leave_loop


class RegexError(ValueError):
    """Invalid pattern."""


TIERS = ((128 << 10, 512), (1 << 20, 64), (8 << 20, 8))
"""Size limit in bytes of a compiled pattern, and number of patterns kept, per tier. A pattern may grow to its limit,
because RE2 keeps the states that a search has reached. Each tier holds at most 64 MB."""


def _options(limit: int) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = limit
    return options


class _Patterns(ComputedCache[str, Any]):
    """Compiled patterns of one tier. `larger` has the patterns that do not fit."""

    __slots__ = ("larger", "options")

    def __init__(self, tiers: tuple[tuple[int, int], ...]) -> None:
        (limit, entries), *others = tiers
        super().__init__(self._compile, entries=entries, key_length=1024)
        self.options = _options(limit)
        self.larger = _Patterns(tuple(others)) if others else None

    def has(self, pattern: str) -> bool:
        return pattern in self or (self.larger is not None and self.larger.has(pattern))

    def clear(self) -> None:
        super().clear()
        if self.larger is not None:
            self.larger.clear()

    def __missing__(self, pattern: str) -> Any:
        larger = self.larger
        if larger is not None and larger.has(pattern):
            return larger[pattern]
        try:
            return super().__missing__(pattern)
        except _TooLarge:
            if larger is None:
                raise
        return larger[pattern]

    def _compile(self, pattern: str) -> Any:
        try:
            return re2.compile(pattern, options=self.options)
        except re2.error as error:
            text = error.args[0] if error.args else ""
            message = text.decode(errors="replace") if isinstance(text, bytes) else str(text)
            kind = _TooLarge if message.startswith("pattern too large") else RegexError
            raise kind(f"error parsing regexp: {_in_go(message, pattern)}") from None
        finally:
            re2.purge()  # the module keeps 128 patterns of any size


class _TooLarge(RegexError):
    """The compiled pattern exceeds the limit of the tier."""


_compiled = _Patterns(TIERS)
compile = _compiled.__getitem__
"""Compiled pattern. RegexError if it is invalid. Do not keep it: the caches limit the memory of all patterns."""

_SHORT = 200
"""Maximum length of a pattern that compiles in less than a millisecond, unless it has repetitions."""


def compile_aside(pattern: str) -> Any:
    """`compile` for code that is retried in the worker after `offload.Lengthy`. RE2 needs up to 200 ms for a pattern
    such as `\\p{L}{1,250}`, and an object may need hundreds of them."""
    if pattern not in _compiled and (len(pattern) > _SHORT or "{" in pattern) and not _compiled.has(pattern):
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
