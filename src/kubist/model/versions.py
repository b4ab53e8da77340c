"""Minor versions of Kubernetes: the served version, and whether something exists in it.

Gates, resources, types and fields record the version that introduced them (`since`) and the first version without them
(`until`), if it lies between the oldest and the newest version of the tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

Version = tuple[int, int]
"""Major and minor number."""

SERVED: Version = (1, 36)
"""Version that every server behaves as."""


@cache
def parse_version(text: str) -> Version:
    """Version of `1.36`."""
    major, _, minor = text.partition(".")
    return int(major), int(minor)


def is_between(limits: Mapping[str, Any], version: Version = SERVED) -> bool:
    """Whether a version is within `since` and `until`, each of which `limits` may lack."""
    if "since" in limits and version < parse_version(limits["since"]):
        return False
    return "until" not in limits or version < parse_version(limits["until"])


def has_row(row: Sequence[Any], place: int, version: Version = SERVED) -> bool:
    """Whether a row of a table exists in a version. The row may have `since` and `until` at `place`."""
    return len(row) <= place or is_between(row[place], version)
