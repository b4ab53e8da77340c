"""Command line: `kubist serve`, `kubist apiserver`, and commands for their data. `commands` lists them."""

from __future__ import annotations

import gc
import os
import sys

from kubist.cli.commands import find
from kubist.cli.exits import INTERRUPTED, USAGE, FlagError, fail, name_flag

_COLOURS = ("auto", "always", "never")


def main(arguments: list[str] | None = None) -> int:
    """Runs a command and returns its exit code."""
    argv = sys.argv[1:] if arguments is None else arguments
    gc.disable()  # Objects made at start are permanent. `runtime.run` enables it again.
    try:
        code = _run(argv)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except FlagError as error:
        return fail(str(error), USAGE)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of a pipe, such as `head -1`, has read enough. Python flushes again at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        # Saves start-up time: only errors need it.
        from kubist.server.runtime.run import explain

        if error.filename is None:
            return fail(f"the output cannot be written: {error.strerror}")
        return fail(name_flag(explain(error), argv))
    finally:
        gc.enable()
        if arguments is None:
            _end_on_ctrl_c()


def _end_on_ctrl_c() -> None:
    """Called when Python is about to end, because Ctrl-C would print a traceback of its clean-up."""
    # Saves start-up time: the module of the command has loaded it.
    import signal

    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _run(argv: list[str]) -> int:
    while argv and argv[0].partition("=")[0] == "--color":
        _, equals, when = argv[0].partition("=")
        argv = argv[1:]
        if not equals:
            when, argv = (argv[0], argv[1:]) if argv else ("", [])
        if when not in _COLOURS:
            return fail(f'invalid argument "{when}" for "--color" flag: must be auto, always or never', USAGE)
        # Saves start-up time: few calls choose colours.
        from kubist.base.terminal import choose_colours

        choose_colours(when)
    name, rest = (argv[0], argv[1:]) if argv else ("help", [])
    name = {"--help": "help", "-h": "help", "--version": "version", "-V": "version"}.get(name, name)
    command = find(name)
    if command is not None:
        return command(rest)
    # Saves start-up time: only mistakes need it.
    from kubist.cli.help import unknown_command, unknown_flag

    return unknown_flag(name) if name.startswith("-") else unknown_command(name)
