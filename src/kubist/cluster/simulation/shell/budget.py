"""Limits of a simulated command: no client's script can take much memory or keep the server busy."""

from __future__ import annotations

from dataclasses import dataclass

from kubist.cluster.simulation.shell.errors import Unsupported

MAX_DEPTH = 40
"""Commands in commands. A shell in a shell is two."""
COPIED_AT_ONCE = 64
"""Characters of expanded words, and bytes of files, that count as one unit of work when they are copied."""


@dataclass(frozen=True, slots=True)
class Limits:
    script: int
    """Characters of a script."""
    word: int
    """Characters of a word, of the value of a variable, and of the output of a command in `$( )`."""
    words: int
    """Characters of all words of a command, and of all variables that a script sets."""
    steps: int
    """Commands of a script, or of one line of an interactive shell."""
    work: int
    """Characters of scripts that are parsed, and files and variables that commands inspect."""


EXEC = Limits(script=64 * 1024, word=128 * 1024, words=2 * 1024 * 1024, steps=10_000, work=20_000_000)
"""Commands of clients. Other tasks of the event loop run between two of them."""
FORESEEN = Limits(script=10_000, word=10_000, words=100_000, steps=2_000, work=32_768)
"""Commands of containers, which the kubelet simulates at once."""


class Budget:
    """Commands and work that are left. Shells in shells share it."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.depth = 0
        self.variables = limits.words
        """Characters of variables that may still be set."""
        self.renew()

    def renew(self) -> None:
        """Resets the limits for the next line of an interactive shell."""
        self.steps, self.work = self.limits.steps, self.limits.work

    def step(self) -> None:
        """Counts a command."""
        self.steps -= 1
        if self.steps < 0:
            raise Unsupported("a script that long")

    def enter(self) -> None:
        """Begins a command in a command. Its end lowers `depth`."""
        if self.depth >= MAX_DEPTH:
            raise Unsupported("a shell that deep")
        self.depth += 1

    def spend(self, work: int) -> None:
        self.work -= work
        if self.work < 0:
            raise Unsupported("a script that takes so long")

    def copy(self, size: int) -> None:
        """Counts the copying of characters or bytes."""
        self.spend(size // COPIED_AT_ONCE + 1)
