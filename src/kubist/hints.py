"""Hints for misspelled names in error messages."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean "workloads"?`, or an empty string if no known name is similar."""
    by_key = {_key(choice): choice for choice in sorted(known, reverse=True)}
    close = difflib.get_close_matches(_key(name), by_key, n=1, cutoff=0.7)
    return f'; did you mean "{by_key[close[0]]}"?' if close else ""


def _key(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")
