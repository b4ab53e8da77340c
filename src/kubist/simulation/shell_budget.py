"""Budget of a simulated shell script: its commands, and the work that they take."""

from __future__ import annotations

from kubist.simulation.shell_syntax import Unknown

MAX_STEPS = 2000
"""Scripts that run more commands are not simulated."""
MAX_WORK = 1_000_000
"""Characters of all scripts that are parsed and of all words that are expanded, and variables and files that are
copied. Scripts that need more are not simulated."""


class Budget:
    """Commands and work of a script that are left. Shells in shells share it."""

    __slots__ = ("steps", "work")

    def __init__(self) -> None:
        self.steps = MAX_STEPS
        self.work = MAX_WORK

    def step(self) -> None:
        """Takes a command. Raises Unknown if there is none left."""
        self.steps -= 1
        if self.steps < 0:
            raise Unknown

    def spend(self, work: int) -> None:
        """Takes work. Raises Unknown if there is not enough left."""
        self.work -= work
        if self.work < 0:
            raise Unknown
