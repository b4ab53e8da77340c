"""What may go wrong with an expression: when it is compiled, and when it is evaluated."""

from __future__ import annotations


class CompileError(Exception):
    """An expression that is none, or not of the types it is used with. `at` is where in the text."""

    def __init__(self, message: str, at: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.at = at


class EvaluationError(Exception):
    """An expression that has no value for these variables."""


class NoSuchOverload(EvaluationError):
    """A function that is not there for values of these types."""

    def __init__(self, what: str = "") -> None:
        super().__init__(f"no such overload{': ' + what if what else ''}")


class CostExceeded(Exception):
    """An evaluation that took more than it may."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")
