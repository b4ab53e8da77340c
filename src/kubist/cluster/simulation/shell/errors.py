"""Exceptions of the simulated shell."""

from __future__ import annotations


class Unsupported(Exception):
    """The script or command cannot be simulated. The argument names the part that cannot."""


class Incomplete(Unsupported):
    """The script ends before a construct does, so that a shell would read another line."""


class Failure(Exception):
    """End of a command with a message."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


class NoSpace(Failure):
    """The limit of a container or of the server is reached."""

    def __init__(self) -> None:
        super().__init__("No space left on device")


class Exit(Exception):
    """End of a shell."""

    def __init__(self, code: int) -> None:
        self.code = code & 0xFF


class Jump(Exception):
    """`break` or `continue` in as many loops."""

    def __init__(self, levels: int, *, goes_on: bool) -> None:
        self.levels = levels
        self.goes_on = goes_on


class Endless(Exception):
    """The command runs until it is stopped."""


class Late(Exception):
    """The deadline of `timeout` has passed."""
