"""The second round of mutating admission: once something changed an object, those before it may look again."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]


class Round:
    """What one plugin remembers of its first round."""

    __slots__ = ("called", "due", "output")

    def __init__(self) -> None:
        self.called: set[str] = set()
        """Webhooks or policies that want to be asked again, and were asked since the last change."""
        self.due: set[str] = set()
        """Those that something changed after."""
        self.output: Object | None = None
        """The object as the plugin left it."""

    def changed(self) -> None:
        """The object is no longer what those who were called have seen."""
        self.due |= self.called
        self.called.clear()


class Reinvocation:
    """One request's rounds."""

    __slots__ = ("again", "rounds", "wanted")

    def __init__(self) -> None:
        self.wanted = False
        self.again = False
        self.rounds: dict[str, Round] = {}

    def round(self, plugin: str) -> Round:
        return self.rounds.setdefault(plugin, Round())
