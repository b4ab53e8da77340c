"""Everything outside the data that a template can ask for: time, random numbers, addresses."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any


class Environment:
    """Environment of one rendering."""

    __slots__ = ("functions", "now", "random", "started", "version")

    def __init__(
        self,
        now: float,
        started: float,
        version: str,
        random_: random.Random,
        functions: Mapping[str, Callable[..., Any]],
    ) -> None:
        self.now = now
        """Unix time of the rendering."""
        self.started = started
        """Unix time of the start of the server."""
        self.version = version
        self.random = random_
        self.functions = functions
        """Functions of the resource, such as PodIPWith."""
