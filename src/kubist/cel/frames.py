"""The frame in which an expression is evaluated: its variables, what it has cost, and what it may."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Frame:
    """Variables and cost of one evaluation."""

    __slots__ = ("cost", "limit", "variables")

    def __init__(self, variables: dict[str, Any], limit: int) -> None:
        self.variables = variables
        self.cost = 0
        self.limit = limit


Closure = Callable[[Frame], Any]
Extra = dict[str, Callable[..., Any]]
