"""Limits of the jq and Go template interpreters, and the error of a Stage."""

from __future__ import annotations

import json
from typing import Any

MAX_SOURCE = 100_000
"""Maximum length in characters of one expression or template."""
MAX_DEPTH = 50
"""Maximum nesting of brackets and blocks in an expression or template."""
MAX_STEPS = 100_000
"""Maximum number of operations in one evaluation."""
MAX_SIZE = 1 << 18
"""Maximum characters or items of one value that an evaluation makes."""


class StageError(ValueError):
    """A Stage, an expression or a template cannot be used. The message is one line."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


def unsupported(construct: str) -> StageError:
    """Error for a construct of jq or Go templates that Kubist does not support."""
    return StageError(
        f"{construct} is not supported: run kwok itself against this server for Stages that use it"
    )


class Budget:
    """Operations that an evaluation may still do."""

    __slots__ = ("left",)

    def __init__(self, steps: int = MAX_STEPS) -> None:
        self.left = steps

    def spend(self, steps: int = 1) -> None:
        self.left -= steps
        if self.left < 0:
            raise StageError(f"the evaluation takes more than {MAX_STEPS} steps")

    def spend_on(self, value: Any) -> None:
        """Spends a step for each value in `value` and for every 16 characters. Values share parts, so a small number
        of operations can make a value that is huge when it is written, compared or searched."""
        left = [value]
        while left:
            item = left.pop()
            self.spend(1 + len(item) // 16 if isinstance(item, str) else 1)
            if isinstance(item, list):
                left += item
            elif isinstance(item, dict):
                left += item.values()


def check_size(size: int) -> None:
    """Rejects a value that would have more than MAX_SIZE characters or items."""
    if size > MAX_SIZE:
        raise StageError(f"a value has more than {MAX_SIZE} characters or items")


def check_source(text: str) -> None:
    if len(text) > MAX_SOURCE:
        raise StageError(f"the text has more than {MAX_SOURCE} characters")


def shortened(text: str) -> str:
    """Source text for an error message: in quotes, at most 80 characters."""
    return repr(text if len(text) <= 80 else f"{text[:77]}...")


def string_literal(literal: str) -> str:
    """Text of a literal in double quotes, with the escape sequences of JSON."""
    try:
        text: str = json.loads(literal, strict=False)
        text.encode()
    except ValueError:
        raise unsupported(f"an escape sequence in {shortened(literal)}") from None
    return text
