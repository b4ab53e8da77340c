"""The order of versions: stable before beta before alpha, the higher number first, anything else last."""

from __future__ import annotations

import re

_VERSION = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")
_STAGES = {None: 0, "beta": 1, "alpha": 2}


def priority(version: str) -> tuple[int, int, int, str]:
    """A key by which versions sort, the most preferred first."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (3, 0, 0, version)
    return (_STAGES[match[2]], -int(match[1]), -int(match[3] or 0), version)
