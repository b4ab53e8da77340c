"""Evaluation frame of an expression: its variables, its cost so far, and its cost limit."""

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
