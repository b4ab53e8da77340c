"""A function of templates: its implementation and the number of its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kubist.cluster.simulation.stages.limits import StageError, check_size

if TYPE_CHECKING:
    from kubist.cluster.simulation.stages.gotemplate.nodes import State

ANY = 1000
"""Maximum number of arguments of a function that takes any number."""


class Function:
    __slots__ = ("_least", "_most", "_run", "_walks", "_with_state", "name")

    def __init__(
        self,
        name: str,
        run: Callable[..., Any],
        least: int,
        most: int,
        *,
        with_state: bool = False,
        walks: bool = False,
    ) -> None:
        self.name = name
        self._run = run
        self._least = least
        self._most = most
        self._with_state = with_state
        """Whether the first argument is the state of the rendering."""
        self._walks = walks
        """Whether it goes through everything in its arguments, which then costs steps."""

    def call(self, state: State, arguments: list[Any]) -> Any:
        if not self._least <= len(arguments) <= self._most:
            wanted = f"{self._least}" if self._least == self._most else f"at least {self._least}"
            raise StageError(f"{self.name}: wrong number of arguments: want {wanted}, got {len(arguments)}")
        for argument in arguments:
            if self._walks:
                state.budget.spend_on(argument)
            elif isinstance(argument, str | list | dict):
                state.budget.spend(len(argument) // 16)
        if self._with_state:
            arguments = [state, *arguments]
        try:
            found = self._run(*arguments)
        except StageError as error:
            text = str(error)
            raise StageError(text if text.startswith(f"{self.name}:") else f"{self.name}: {text}") from None
        except (TypeError, ValueError, AttributeError, OverflowError):
            raise StageError(f"{self.name}: cannot use arguments of these types") from None
        if isinstance(found, str | list):
            check_size(len(found))
        return found
