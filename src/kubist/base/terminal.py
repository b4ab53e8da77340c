"""Colours for terminals, and the line that reports an error. Output to files and pipes stays plain.

`NO_COLOR` and `TERM=dumb` turn colours off, `FORCE_COLOR` turns them on everywhere, such as in the logs of CI.
`kubist --color` sets these variables.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # Saves start-up time: `kubist --help` does without `typing`.
if TYPE_CHECKING:
    from typing import TextIO

_CODES = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "cyan": 36}


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a stream is a terminal that can move its cursor. Streams that were closed from the start are None."""
    try:
        return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"
    except ValueError:  # the stream is closed
        return False


def has_colours(stream: TextIO | None) -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or is_terminal(stream)


def paint(text: str, *styles: str, stream: TextIO | None = None) -> str:
    """The text in these styles if the stream has colours. The default stream is standard output."""
    if not text or not has_colours(stream or sys.stdout):
        return text
    codes = ";".join(str(_CODES[style]) for style in styles)
    return f"\x1b[{codes}m{text}\x1b[0m"


def fail(message: str, code: int = 1) -> int:
    """Prints one line about an error. Returns the exit code."""
    if sys.stderr is None:  # it was closed from the start
        return code
    start = paint("kubist:", "red", "bold", stream=sys.stderr)
    print(f"{start} {' '.join(message.split())}", file=sys.stderr)
    return code


def choose_colours(when: str) -> None:
    """Applies `--color`: `auto`, `always` or `never`. Child processes inherit the choice."""
    if when == "never":
        os.environ["NO_COLOR"] = "1"
    elif when == "always":
        os.environ.pop("NO_COLOR", None)
        os.environ["FORCE_COLOR"] = "1"
