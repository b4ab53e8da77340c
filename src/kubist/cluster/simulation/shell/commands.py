"""Commands of the simulated shell. Each is a coroutine that gets the shell and its words."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Container
from typing import TYPE_CHECKING

from kubist.cluster.simulation.shell import file_commands
from kubist.cluster.simulation.shell.errors import Exit, Failure, Jump, Late, Unsupported
from kubist.cluster.simulation.shell.file_commands import Command, Result, tar
from kubist.cluster.simulation.shell.syntax import calculate, integer

if TYPE_CHECKING:
    from kubist.cluster.simulation.shell.shell import Shell

TIMED_OUT = 124
LAST_TIME = 253_402_300_799
"""Last second of the year 9999."""
KERNEL = "simulated"
"""Version of the kernel, as simulated nodes report it."""
MACHINE = "x86_64"
_TIME = re.compile(r"(?=\.?[0-9])([0-9]{0,9}(?:\.[0-9]{1,9})?)([smhd]?)")
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_OTHER_FORMATS = re.compile("%[^YmdHMSsFTabeDjyu]")
_ESCAPES = {"\\n": "\n", "\\t": "\t", "\\r": "\r", "\\e": "\x1b", "\\033": "\x1b", "\\\\": "\\"}
_ESCAPE = re.compile("|".join(map(re.escape, _ESCAPES)))


async def _true(_shell: Shell, _words: list[str]) -> Result:
    return 0


async def _false(_shell: Shell, _words: list[str]) -> Result:
    return 1


async def _exit(shell: Shell, words: list[str]) -> Result:
    raise Exit(integer(words[0]) if words else shell.code)


async def _break(shell: Shell, words: list[str], *, goes_on: bool = False) -> Result:
    if shell.loops:
        raise Jump(max(1, min(integer("".join(words) or "1"), shell.loops)), goes_on=goes_on)
    return 0


async def _continue(shell: Shell, words: list[str]) -> Result:
    return await _break(shell, words, goes_on=True)


async def _exec(shell: Shell, words: list[str]) -> Result:
    if words:
        raise Exit(await shell.call(words))
    return 0


async def _sh(shell: Shell, words: list[str]) -> Result:
    return await shell.nested(words)


async def _sleep(shell: Shell, words: list[str]) -> Result:
    await shell.container.clock.sleep(sum(map(_seconds, words or [""])))
    return 0


def _seconds(text: str) -> float:
    if text in ("infinity", "inf"):
        return math.inf
    if amount := _TIME.fullmatch(text):
        return float(amount[1]) * _UNITS[amount[2]]
    raise Failure(f"invalid number '{text}'")


async def _timeout(shell: Shell, words: list[str]) -> Result:
    if len(words) < 2 or words[0].startswith("-"):
        raise Unsupported(f"timeout {' '.join(words)}")
    clock = shell.container.clock
    outer, own = clock.deadline, clock.passed() + (_seconds(words[0]) or math.inf)
    clock.deadline = min(outer, own)
    try:
        return await shell.call(words[1:])
    except Late:
        if own > outer:
            raise
        return TIMED_OUT
    finally:
        clock.deadline = outer


async def _echo(_shell: Shell, words: list[str]) -> Result:
    options = ""
    while words and words[0] in ("-n", "-e", "-ne", "-en"):
        options, words = options + words[0], words[1:]
    text = " ".join(words) if "e" not in options else _unescaped(" ".join(words))
    return text if "n" in options else f"{text}\n"


async def _printf(_shell: Shell, words: list[str]) -> Result:
    parts = _unescaped("".join(words[:1])).split("%s")
    if "%" in "".join(parts) or len(parts) != len(words):
        raise Unsupported(f"printf {' '.join(words)}")
    return "".join(part + value for part, value in zip(parts, [*words[1:], ""], strict=True))


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda match: _ESCAPES[match[0]], text)


async def _clear(_shell: Shell, _words: list[str]) -> Result:
    return "\x1b[H\x1b[2J"


async def _date(shell: Shell, words: list[str]) -> Result:
    shell.container.reads += 1
    now, form = shell.container.clock.now(), "+%a %b %e %H:%M:%S UTC %Y"
    for word in words:
        form = word if word.startswith("+") else form
        if word[:1] != "+" and word not in ("-u", "--utc"):
            raise Unsupported(f"date {word}")
    if _OTHER_FORMATS.search(form) or now > LAST_TIME:
        raise Unsupported(f"date {form}")
    return time.strftime(form[1:].replace("%s", str(int(now))), time.gmtime(now)) + "\n"


async def _hostname(shell: Shell, words: list[str]) -> Result:
    if words:
        raise Unsupported(f"hostname {words[0]}")
    return f"{shell.variable('HOSTNAME')}\n"


async def _uname(shell: Shell, words: list[str]) -> Result:
    letters = {letter for word in words for letter in word.removeprefix("-")} or {"s"}
    texts = ("Linux", shell.variable("HOSTNAME"), KERNEL, KERNEL, MACHINE, "GNU/Linux")
    if letters - set("asnrvmo"):
        raise Unsupported(f"uname {' '.join(words)}")
    return (
        " ".join(text for letter, text in zip("snrvmo", texts, strict=True) if letters & {letter, "a"}) + "\n"
    )


async def _id(shell: Shell, words: list[str]) -> Result:
    user, option = shell.container.user, "".join(word.removeprefix("-") for word in words)
    if user is None or option not in ("", "u", "g", "un", "nu", "gn", "ng"):
        raise Unsupported(f"id {' '.join(words)}")
    number = user["gid"] if "g" in option else user["uid"]
    if option:
        return f"{'root' if 'n' in option and not number else number}\n"
    numbers = (user["uid"], user["gid"], *user["supplementalGroups"])
    uid, gid, *groups = (str(number) if number else "0(root)" for number in numbers)
    return f"uid={uid} gid={gid} groups={','.join(groups)}\n"


async def _whoami(shell: Shell, _words: list[str]) -> Result:
    return await _id(shell, ["-un"])


async def _expr(_shell: Shell, words: list[str]) -> Result:
    value = calculate(words)
    return f"{value}\n", int(not value)


async def _set(shell: Shell, words: list[str]) -> Result:
    if rest := shell.set_options(words):
        raise Unsupported(f"set {rest[0]}")
    return 0


async def _export(shell: Shell, words: list[str]) -> Result:
    for name, value in (word.split("=", 1) for word in words if "=" in word):
        shell.set_variable(name, value)
    return 0


async def _unset(shell: Shell, words: list[str]) -> Result:
    for word in words:
        shell.variables.pop(word, None)
    return 0


async def _trap(_shell: Shell, words: list[str]) -> Result:
    """Handlers of signals do not run, because a container that is stopped ends at once."""
    if {word.upper() for word in words[1:]} & {"EXIT", "0", "ERR", "DEBUG", "RETURN"}:
        raise Unsupported(f"trap {' '.join(words[1:])}")
    return 0


async def _env(shell: Shell, words: list[str]) -> Result:
    """`env NAME=VALUE COMMAND`, or a list of the variables."""
    inner, rest = shell.subshell(), list(words)
    while rest and rest[0][:1] != "-" and "=" in rest[0]:
        inner.set_variable(*rest.pop(0).split("=", 1))
    if rest and rest[0].startswith("-"):
        raise Unsupported(f"env {rest[0]}")
    if rest:
        return await inner.call(rest)
    return "".join(f"{name}={value}\n" for name, value in inner.variables.items())


async def _printenv(shell: Shell, words: list[str]) -> Result:
    if not words:
        return await _env(shell, words)
    values = [shell.variables[word] for word in words if word in shell.variables]
    if len(values) < len(words):
        shell.container.doubt("printenv")
    return "".join(f"{value}\n" for value in values), int(len(values) < len(words))


async def _pwd(shell: Shell, _words: list[str]) -> Result:
    return f"{shell.directory}\n"


async def _cd(shell: Shell, words: list[str]) -> Result:
    path = shell.path(words[0] if words else shell.variables.get("HOME", "/"))
    if words and not shell.container.is_directory(path):
        shell.container.doubt(path)
        raise Failure(f"can't cd to {words[0]}: No such file or directory")
    shell.directory = path
    return 0


async def _command(shell: Shell, words: list[str]) -> Result:
    """`command -v NAME`, or a command."""
    if words[:1] == ["-v"]:
        return _describe_commands(shell, words[1:], COMMANDS)
    return await shell.call(words) if words else 0


async def _which(shell: Shell, words: list[str]) -> Result:
    return _describe_commands(shell, words, ())


def _describe_commands(shell: Shell, names: list[str], builtins: Container[str]) -> Result:
    """Paths of programs, and names of builtins."""
    paths = [shell.program(name) or (name if name in builtins else "") for name in names]
    if not all(paths):
        shell.container.doubt(" ".join(names))
    return "".join(f"{path}\n" for path in paths if path), int(not all(paths))


SHELLS = ("sh", "bash", "ash", "dash")
PREFIXES = ("busybox", "nohup", "tini", "dumb-init")
"""Programs that run the program that follows them."""
BUILTINS = frozenset(
    [":", "[[", "break", "cd", "command", "continue", "exec", "exit", "export", "set", "trap", "unset"]
)
"""Commands that are not programs."""
COMMANDS: dict[str, Command] = {
    **dict.fromkeys(SHELLS, _sh),
    **dict.fromkeys(PREFIXES, _true),
    **file_commands.COMMANDS,
    "true": _true,
    ":": _true,
    "false": _false,
    "exit": _exit,
    "break": _break,
    "continue": _continue,
    "exec": _exec,
    "sleep": _sleep,
    "timeout": _timeout,
    "echo": _echo,
    "printf": _printf,
    "clear": _clear,
    "date": _date,
    "hostname": _hostname,
    "uname": _uname,
    "id": _id,
    "whoami": _whoami,
    "expr": _expr,
    "set": _set,
    "export": _export,
    "unset": _unset,
    "trap": _trap,
    "env": _env,
    "printenv": _printenv,
    "pwd": _pwd,
    "cd": _cd,
    "command": _command,
    "which": _which,
    "tar": tar,
}
"""Simulated commands. docs/workloads.md lists them."""
