"""Commands of the simulated shell. Each gets the shell and its words, and returns its exit code."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from kubist.simulation.shell_math import calculate, integer
from kubist.simulation.shell_syntax import Unknown

if TYPE_CHECKING:
    from kubist.simulation.shell import Shell

ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
TIMED_OUT = 124
LAST_TIME = 253_402_300_799
"""Last second of the year 9999."""
_SLEEP = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smhd]?)")
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_OTHER_FORMATS = re.compile("%[^YmdHMSsFTabeDjyu]")


def _true(_shell: Shell, _words: list[str]) -> int:
    return 0


def _false(_shell: Shell, _words: list[str]) -> int:
    return 1


def _exit(shell: Shell, words: list[str]) -> int:
    shell.exit(integer(words[0]) if words else 0)
    return 0


def _sleep(shell: Shell, words: list[str]) -> int:
    if not words:
        return 1
    for word in words:
        if word in ("infinity", "inf"):
            shell.forever()
        amount = _SLEEP.fullmatch(word)
        if amount is None:
            return 1
        shell.result.seconds += float(amount[1]) * _UNITS[amount[2]]
    return 0


def _echo(shell: Shell, words: list[str]) -> int:
    end = "\n"
    while words and words[0] in ("-n", "-e", "-ne", "-en"):
        end = "" if "n" in words[0] else end
        words = words[1:]
    shell.print(" ".join(words) + end)
    return 0


def _printf(shell: Shell, words: list[str]) -> int:
    if not words:
        return 2
    text = words[0].replace("\\n", "\n").replace("\\t", "\t")
    parts = text.split("%s")
    if "%" in "".join(parts) or len(parts) != len(words):
        raise Unknown
    values = [*words[1:], ""]
    shell.print("".join(part + value for part, value in zip(parts, values, strict=True)))
    return 0


def _date(shell: Shell, words: list[str]) -> int:
    """Time of the start of the pod, and the seconds that the script has run."""
    shell.reads_time = True
    form = "+%a %b %e %H:%M:%S UTC %Y"
    for word in words:
        if word.startswith("+"):
            form = word
        elif word not in ("-u", "--utc"):
            raise Unknown
    now = shell.started + shell.result.seconds
    if _OTHER_FORMATS.search(form) or now > LAST_TIME:
        raise Unknown
    shell.print(time.strftime(form[1:].replace("%s", str(int(now))), time.gmtime(now)) + "\n")
    return 0


def _hostname(shell: Shell, words: list[str]) -> int:
    if words:
        raise Unknown
    shell.print(shell.variables.get("HOSTNAME", "") + "\n")
    return 0


def _mkdir(shell: Shell, words: list[str]) -> int:
    return _touch(shell, words)


def _env(shell: Shell, words: list[str]) -> int:
    """`env NAME=VALUE COMMAND`. The list of variables is not known here, so that only its exit code is simulated."""
    rest, before = list(words), dict(shell.variables)
    while rest and (assignment := ASSIGNMENT.fullmatch(rest[0])):
        shell.variables[assignment[1]] = assignment[2]
        rest.pop(0)
    try:
        return _start(shell, rest)
    finally:
        shell.variables = before


def _start(shell: Shell, words: list[str]) -> int:
    """Runs another program, as `nohup` and `tini --` do."""
    rest = words[1:] if words[:1] == ["--"] else words
    if rest and rest[0].startswith("-"):
        raise Unknown
    return shell.call(rest) if rest else 0


def _timeout(shell: Shell, words: list[str]) -> int:
    amount = _SLEEP.fullmatch(words[0]) if words else None
    if amount is None or len(words) < 2:
        raise Unknown
    before, limit = shell.result.seconds, float(amount[1]) * _UNITS[amount[2]]
    code = shell.limited(words[1:])
    if limit and shell.result.seconds > before + limit:
        shell.result.seconds = before + limit
        return TIMED_OUT
    if math.isinf(shell.result.seconds):
        shell.forever()
    return code


def _trap(_shell: Shell, words: list[str]) -> int:
    """Handlers of signals do not run, because a container that is stopped ends at once."""
    if any(word.upper() in ("EXIT", "0", "ERR", "DEBUG", "RETURN") for word in words[1:]):
        raise Unknown
    return 0


def _touch(shell: Shell, words: list[str]) -> int:
    shell.result.files.update(word for word in words if not word.startswith("-"))
    return 0


def _rm(shell: Shell, words: list[str]) -> int:
    shell.result.files.difference_update(words)
    return 0


def _expr(shell: Shell, words: list[str]) -> int:
    value = calculate(words)
    shell.print(f"{value}\n")
    return int(not value)


def _set(shell: Shell, words: list[str]) -> int:
    if shell.set_options(words):
        raise Unknown
    return 0


def _export(shell: Shell, words: list[str]) -> int:
    for word in words:
        if assignment := ASSIGNMENT.fullmatch(word):
            shell.variables[assignment[1]] = assignment[2]
    return 0


def _tail(shell: Shell, words: list[str]) -> int:
    if "/dev/null" in words and any(word in ("-f", "-F") for word in words):
        shell.forever()
    raise Unknown


def _test(shell: Shell, words: list[str]) -> int:
    if words[:1] == ["!"]:
        return int(not _test(shell, words[1:]))
    if len(words) == 1:
        return int(not words[0])
    if len(words) == 2:
        operator, value = words
        if operator in ("-e", "-f", "-r", "-s", "-w"):
            return int(value not in shell.result.files)
        if operator in ("-z", "-n"):
            return int((not value) == (operator == "-n"))
        raise Unknown
    if len(words) != 3:
        raise Unknown
    left, operator, right = words
    if operator in ("=", "==", "!="):
        return int((left == right) == (operator == "!="))
    if operator not in _COMPARISONS:
        raise Unknown
    return int(not _COMPARISONS[operator](integer(left), integer(right)))


_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "-eq": lambda left, right: left == right,
    "-ne": lambda left, right: left != right,
    "-lt": lambda left, right: left < right,
    "-le": lambda left, right: left <= right,
    "-gt": lambda left, right: left > right,
    "-ge": lambda left, right: left >= right,
}


def _bracket(closing: str) -> Callable[[Shell, list[str]], int]:
    def test(shell: Shell, words: list[str]) -> int:
        if not words or words[-1] != closing:
            return 2
        return _test(shell, words[:-1])

    return test


COMMANDS: dict[str, Callable[[Shell, list[str]], int]] = {
    "true": _true,
    ":": _true,
    "false": _false,
    "exit": _exit,
    "sleep": _sleep,
    "echo": _echo,
    "printf": _printf,
    "date": _date,
    "hostname": _hostname,
    "mkdir": _mkdir,
    "touch": _touch,
    "rm": _rm,
    "expr": _expr,
    "set": _set,
    "export": _export,
    "trap": _trap,
    "env": _env,
    "nohup": _start,
    "tini": _start,
    "dumb-init": _start,
    "busybox": _start,
    "timeout": _timeout,
    "tail": _tail,
    "test": _test,
    "[": _bracket("]"),
    "[[": _bracket("]]"),
}
"""Simulated commands. docs/workloads.md lists them."""
