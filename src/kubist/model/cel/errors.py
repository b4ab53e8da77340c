"""Compile errors and evaluation errors of expressions."""

from __future__ import annotations

_MOST_ERRORS = 101
"""Maximum number of errors shown for one expression, as many as the parser reports."""
_LONGEST_LINE = 16384
"""Maximum length in characters of a line that errors show."""


class CompileError(Exception):
    """Syntax or type error of an expression. `at` is the offset in the text; `others` are further errors of
    the same expression."""

    def __init__(self, message: str, at: int = 0, others: tuple[CompileError, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.at = at
        self.others = others

    def located(self, expression: str) -> str:
        """All errors in order of position, each with its line and a mark below the position."""
        problems = sorted((self, *self.others), key=lambda problem: problem.at)
        messages = [problem._marked(expression) for problem in problems[:_MOST_ERRORS]]
        if len(problems) > _MOST_ERRORS:
            messages.append(f"{len(problems) - _MOST_ERRORS} more errors were truncated")
        return "\n".join(messages)

    def _marked(self, expression: str) -> str:
        before = expression[: self.at]
        line = before.count("\n")
        column = len(before) - (before.rfind("\n") + 1)
        text = expression.split("\n")[line].replace("\t", " ")
        if not expression:
            return f"ERROR: <input>:1:0: {self.message}"
        if len(text) > _LONGEST_LINE:
            return f"ERROR: <input>:{line + 1}:{column + 1}: {self.message}"
        dots = "".join("." if char.isascii() else "\uff0e" for char in text[:column])
        mark = "^" if text[column : column + 1].isascii() else "\uff3e"
        return f"ERROR: <input>:{line + 1}:{column + 1}: {self.message}\n | {text}\n | {dots}{mark}"


def combined(errors: list[CompileError]) -> CompileError:
    """The first of several errors, with the others."""
    first, *others = errors
    return CompileError(first.message, first.at, tuple(others))


class EvaluationError(Exception):
    """The evaluation failed for these variables."""


class NoSuchOverload(EvaluationError):
    """The function has no overload for values of these types."""

    def __init__(self, what: str = "") -> None:
        super().__init__(f"no such overload{': ' + what if what else ''}")


class CostExceeded(Exception):
    """The evaluation exceeded its cost limit."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")
