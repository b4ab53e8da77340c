"""Hints for misspelled names in error messages."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from itertools import islice

LONGEST, MOST = 100, 1000
"""Maximum length of a name and maximum number of known names that are compared, because comparison is slow."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean "workloads"?`, or an empty string if no known name is similar."""
    if len(name) > LONGEST:
        return ""
    choices = sorted(islice(known, MOST), reverse=True)
    by_key = {_key(choice): choice for choice in choices if len(choice) <= LONGEST}
    close = difflib.get_close_matches(_key(name), by_key, n=1, cutoff=0.7)
    return f'; did you mean "{by_key[close[0]]}"?' if close else ""


def _key(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")
