"""What was found to be in order and comes again and again: the labels, ports and amounts of pods of one template.

Only what is sound is kept, so nobody fills this with rubbish; whatever is not known is looked at as ever.
"""

from __future__ import annotations

from typing import Any


class Sound(set[Any]):
    """A bounded set that forgets everything at once when it is full: `key in sound` costs next to nothing."""

    def __init__(self, *, most: int = 4096, longest: int = 16) -> None:
        """`most` keys of at most `longest` parts, bytes or characters."""
        super().__init__()
        self._most = most
        self._longest = longest

    def note(self, key: tuple[Any, ...] | bytes | str) -> None:
        if len(key) <= self._longest:
            if len(self) >= self._most:
                self.clear()
            self.add(key)
