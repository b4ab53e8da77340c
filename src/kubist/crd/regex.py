"""Regular expressions of definitions and of CEL: RE2's syntax and its linear time, whatever the pattern."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import re2  # type: ignore[import-untyped]

from kubist.caching import bounded_cache


class RegexError(ValueError):
    """A pattern that is none."""


_options = re2.Options()
_options.log_errors = False


@bounded_cache(entries=512, key_length=1024)
def compile(pattern: str) -> Any:
    try:
        return re2.compile(pattern, options=_options)
    except re2.error as error:
        text = error.args[0] if error.args else ""
        message = text.decode(errors="replace") if isinstance(text, bytes) else str(text)
        raise RegexError(f"error parsing regexp: {message}") from None


def searcher(pattern: str) -> Callable[[str], Any]:
    """A function that finds the pattern anywhere in a text."""
    found: Callable[[str], Any] = compile(pattern).search
    return found
