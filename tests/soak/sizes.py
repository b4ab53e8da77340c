"""Sizes of the soak tests. `KUBIST_SOAK=short` (`make soak-short`) selects the short ones, about 20 minutes in
total.

A variable sets a single size: `KUBIST_SOAK_KILLS=50`.
"""

from __future__ import annotations

import os
from collections.abc import Callable

Note = Callable[[object], None]
"""Records a figure for the summary (the fixture `note`)."""
SHORT = os.environ.get("KUBIST_SOAK") == "short"


def size(name: str, full: int, short: int) -> int:
    """Size `name`: the value of KUBIST_SOAK_<NAME>, otherwise the full or the short size."""
    return int(os.environ.get(f"KUBIST_SOAK_{name}") or (short if SHORT else full))
