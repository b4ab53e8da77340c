"""Reinvocation of mutating admission: a second round for webhooks and policies, after a later one changed the
object."""

from __future__ import annotations

from kubist.model.meta.object import Object


class Round:
    """State of one plugin from the first round."""

    __slots__ = ("called", "due", "output")

    def __init__(self) -> None:
        self.called: set[str] = set()
        """Reinvocable webhooks or policies that were called since the last change."""
        self.due: set[str] = set()
        """Webhooks or policies to call again, because the object changed after their call."""
        self.output: Object | None = None
        """Object as the plugin left it."""

    def changed(self) -> None:
        """Marks all called webhooks or policies as due, because the object changed."""
        self.due |= self.called
        self.called.clear()


class Reinvocation:
    """Rounds of mutating admission for one request."""

    __slots__ = ("again", "is_needed", "rounds")

    def __init__(self) -> None:
        self.is_needed = False
        self.again = False
        self.rounds: dict[str, Round] = {}

    def round(self, plugin: str) -> Round:
        return self.rounds.setdefault(plugin, Round())
