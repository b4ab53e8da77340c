"""`kubist help`, `kubist version`, and the help of commands, grouped by topic."""

from __future__ import annotations

import os
import re
import sys

from kubist.base.terminal import is_terminal, paint
from kubist.base.version import __version__
from kubist.cli.commands import TOPICS, all_commands, find
from kubist.cli.exits import USAGE, fail

TYPE_CHECKING = False  # Saves start-up time: `kubist --help` does without `typing`.
if TYPE_CHECKING:
    from collections.abc import Iterable

    from kubist.cli.flag_list import Flag

_WIDEST = 44
"""Maximum width of a flag in columns. The text of a longer flag begins on the next line."""
_NARROW = 100
"""Terminals with fewer columns have less room for flags."""
_WIDEST_NARROW = 30
_SHORTEST_TEXT = 40
"""Minimum width in columns of the text beside a flag. With less room, it begins on the next line."""


def main(arguments: list[str]) -> int:
    """`kubist help`, or `kubist help COMMAND`, which is `kubist COMMAND --help`."""
    names = [word for word in arguments if word not in ("--help", "-h")]
    if not names:
        print(coloured(overview()), end="")
        return 0
    command = find(names[0])
    if command is None:
        return unknown_command(names[0])
    if len(names) > 1:
        return fail(f"unexpected argument {names[1]!r}: the usage is {_SYNOPSES['help']}", USAGE)
    if names[0] in ("help", "version"):
        print(
            coloured(f"{_sentence(all_commands()[names[0]][1])}\n\nUsage:\n  {_SYNOPSES[names[0]]}\n"), end=""
        )
        return 0
    return command(["--help"])


_SYNOPSES = {"help": "kubist help [COMMAND]", "version": "kubist version"}


def _sentence(summary: str) -> str:
    return f"{summary[0].upper()}{summary[1:]}."


def show_version(arguments: list[str]) -> int:
    if arguments in (["--help"], ["-h"]):
        return main(["version"])
    if arguments:
        return fail(f"unexpected argument {arguments[0]!r}: kubist version takes none", USAGE)
    print(f"kubist {__version__} (Kubernetes v1.36)")
    return 0


def unknown_command(name: str) -> int:
    # Saves start-up time: only mistyped names need it.
    from kubist.base.hints import did_you_mean

    hint = did_you_mean(name, all_commands())
    return fail(f"unknown command {name!r}{hint or ';'} `kubist --help` lists them", USAGE)


def unknown_flag(word: str) -> int:
    """A flag before the command."""
    return fail(
        f"unknown flag {word!r} before the command: flags follow the command, as in `kubist serve --in-memory`",
        USAGE,
    )


def overview() -> str:
    """All commands by topic."""
    width = max(map(len, all_commands())) + 3
    lines = [
        "Kubist: the Kubernetes API server as a Python package.",
        "",
        "Usage:",
        "  kubist COMMAND [flags]",
        "",
    ]
    for topic, rows in TOPICS.items():
        lines += [f"{topic}:", *(f"  {name.ljust(width)}{summary}" for name, _, summary in rows), ""]
    lines += [
        "Flags for all commands, before the command:",
        "  --color auto|always|never   colours: on terminals only, always or never; NO_COLOR=1 is never",
        "",
        "Start with `kubist serve`. `kubist help COMMAND` describes a command and its flags.",
    ]
    return "\n".join(lines) + "\n"


def show(title: str, flags: Iterable[Flag]) -> int:
    """Prints the help of a command. Returns the exit code."""
    print(coloured(grouped(title, flags, _WIDEST_NARROW if 0 < columns() < _NARROW else _WIDEST)), end="")
    return 0


def grouped(title: str, flags: Iterable[Flag], widest: int = _WIDEST) -> str:
    """Help with one line per flag, under the headings of their groups in the order of their first flags."""
    groups: dict[str, list[Flag]] = {}
    for flag in flags:
        groups.setdefault(flag.group or "Flags", []).append(flag)
    names = {flag: _name(flag) for group in groups.values() for flag in group}
    width = min(max(map(len, names.values()), default=0), widest)
    lines = [title]
    for group, members in groups.items():
        lines += ["", f"{group}:"]
        for flag in members:
            text = flag.help
            if flag.default not in ("", "[]", "false"):
                text += f" (default {flag.default})"
            name = names[flag]
            if len(name) > width:
                lines.append(f"  {name}")
                name = ""
            lines.append(f"  {name.ljust(width)}  {text}")
    return "\n".join(lines) + "\n"


def _name(flag: Flag) -> str:
    short = f"-{flag.short}, " if flag.short else ""
    return f"{short}--{flag.name}" + ("" if flag.type == "bool" else f" {flag.type}")


def coloured(text: str) -> str:
    """Help text for standard output: lines of the terminal's width, bold headings, coloured flags and commands."""
    text = fitted(text, columns())
    if paint("x", "bold") == "x":
        return text
    text = re.sub(r"^(\S.*:)$", lambda match: paint(match[1], "bold", "green"), text, flags=re.MULTILINE)
    text = re.sub(
        r"^(  +)((?:-\w, )?--[\w-]+|[a-z]+(?=   ))",
        lambda match: match[1] + paint(match[2], "bold", "cyan"),
        text,
        flags=re.MULTILINE,
    )
    return re.sub(r"`([^`\n]+)`", lambda match: paint(match[1], "cyan"), text)


def columns() -> int:
    """Width in columns of the terminal on standard output; 0 if it is not a terminal."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns if is_terminal(sys.stdout) else 0
    except (OSError, ValueError):
        return 0


def fitted(text: str, width: int) -> str:
    """Help text wrapped to this width, except for longer words and examples; 0 changes nothing."""
    if not width or max(map(len, text.split("\n"))) <= width:
        return text
    blocks = re.split(r"(?<=\n)(?=\s|\S[^\n]*:\n)|(?<=\n\n)", text)
    rows = {block: match for block in blocks if (match := _ROW.match(block))}
    is_beside = width - max((len(match[1]) for match in rows.values()), default=0) >= _SHORTEST_TEXT
    return "".join(_fitted(block, rows.get(block), width, is_beside) for block in blocks)


_ROW = re.compile(r"( +(?:-|[a-z]+  |(?= {20}))(?:\S| (?! ))*\s\s+)(\S.*)\n")
"""Flag or command, and its text."""


def _fitted(block: str, row: re.Match[str] | None, width: int, is_beside: bool) -> str:
    """A paragraph, or the line of a flag or command."""
    # Saves start-up time: pipes need none of it.
    from textwrap import fill

    line = block.rstrip("\n")
    if row is not None and not is_beside:
        name = f"{row[1].rstrip()}\n" if row[1].strip() else ""
        text = fill(row[2], width, initial_indent=_INDENT, subsequent_indent=_INDENT, break_on_hyphens=False)
        return f"{name}{text}\n"
    if "\n" not in line and len(line) <= width:
        return block
    if row is not None:
        indent = " " * len(row[1])
        text = fill(row[2], width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
        return f"{row[1]}{text[len(indent) :]}\n"
    if line.startswith(" "):
        return block
    return fill(" ".join(line.split()), width, break_on_hyphens=False) + block[len(line) :]


_INDENT = " " * 10
