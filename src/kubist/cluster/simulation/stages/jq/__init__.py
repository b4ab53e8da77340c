"""A subset of jq: paths, pipes, operators, `if`, `try`, variables, constructors, and common functions.

    Query('.status.conditions.[] | select(.type == "Ready") | .status').values(pod)

`Query` raises `StageError` for a malformed or unsupported expression. `docs/workloads.md` lists what is supported.
"""

from __future__ import annotations

from typing import Any

from kubist.cluster.simulation.stages.jq.parser import Parser
from kubist.cluster.simulation.stages.jq.values import Failure, Scope
from kubist.cluster.simulation.stages.limits import Budget, StageError, check_source, shortened


class Query:
    """A compiled expression."""

    __slots__ = ("_run", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        check_source(text)
        try:
            self._run = Parser(text).program()
        except StageError as error:
            raise StageError(f"jq expression {shortened(text)}: {error}") from None
        except RecursionError:
            raise StageError(f"jq expression {shortened(text)}: too many operators") from None

    def outputs(self, data: Any, now: float = 0.0) -> list[Any]:
        """All outputs. StageError if the evaluation fails. `now` is the time that the function `now` returns."""
        try:
            return list(self._run(data, Scope(Budget(), now)))
        except (Failure, StageError) as failure:
            raise StageError(f"jq expression {shortened(self.text)}: {failure}") from None
        except RecursionError:
            raise StageError(f"jq expression {shortened(self.text)}: too many operators") from None

    def values(self, data: Any, now: float = 0.0) -> list[Any] | None:
        """Outputs without nulls; None if the evaluation fails. These are KWOK's rules."""
        try:
            return [value for value in self.outputs(data, now) if value is not None]
        except StageError:
            return None
