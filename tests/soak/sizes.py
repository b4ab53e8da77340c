"""Sizes of the long tests. `KUBIST_SOAK=short` (`make soak-short`) takes the short ones, for 20 minutes in all.

A single size is set by its own variable: `KUBIST_SOAK_KILLS=50`.
"""

from __future__ import annotations

import os
from collections.abc import Callable

Note = Callable[[object], None]
"""Records a figure for the summary (the fixture `note`)."""
SHORT = os.environ.get("KUBIST_SOAK") == "short"


def size(name: str, full: int, short: int) -> int:
    """The size `name`: what KUBIST_SOAK_<NAME> says, else the full or the short one."""
    return int(os.environ.get(f"KUBIST_SOAK_{name}") or (short if SHORT else full))
