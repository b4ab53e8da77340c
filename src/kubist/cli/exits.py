"""Exit codes of all commands, and the line that explains an error. docs/cli.md has the table."""

from __future__ import annotations

import sys

from kubist.terminal import paint

OK = 0
FAILED = 1
USAGE = 2
NOT_RUNNING = 3
DAMAGED = 4
ADDRESS = 5
IN_USE = 6
INTERRUPTED = 130


class FlagError(Exception):
    """Invalid command line. The text is the whole message."""


def fail(message: str, code: int = FAILED) -> int:
    """Prints one line about an error. Returns the exit code."""
    start = paint("kubist:", "red", "bold", stream=sys.stderr)
    print(f"{start} {' '.join(message.split())}", file=sys.stderr)
    return code
