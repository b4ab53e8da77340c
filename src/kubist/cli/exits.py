"""Exit codes of all commands. Errors at the start of a server have theirs in `kubist.errors`."""

from __future__ import annotations

from kubist.base.terminal import fail as fail

OK = 0
FAILED = 1
USAGE = 2
NOT_RUNNING = 3
DAMAGED = 4
IN_USE = 6
INTERRUPTED = 130


def name_flag(message: str, arguments: list[str]) -> str:
    """Error message about a path, with the flag that named the path in front."""
    for word, following in zip(arguments, [*arguments[1:], ""], strict=True):
        flag, equals, value = word.partition("=")
        value = value if equals else following
        if flag.startswith("--") and value and message.startswith((f"{value}: ", f"{value} ", f"{value}/")):
            return f"{flag}: {message}"
    return message


class FlagError(Exception):
    """Invalid command line. The text is the whole message."""
