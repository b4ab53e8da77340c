"""Exit codes of all commands. Errors at the start of a server have theirs in `kubist.errors`."""

from __future__ import annotations

from kubist.terminal import fail as fail

OK = 0
FAILED = 1
USAGE = 2
NOT_RUNNING = 3
DAMAGED = 4
IN_USE = 6
INTERRUPTED = 130


class FlagError(Exception):
    """Invalid command line. The text is the whole message."""
