"""Commands that are simulated without a handler. Each is a coroutine that gets the process and its arguments and
returns the exit code."""

from __future__ import annotations

import asyncio
import math
import posixpath
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

from kubist.simulation.kubeletapi import tarcommand
from kubist.simulation.kubeletapi.filestore import File, absolute
from kubist.simulation.kubeletapi.shell import Unsupported

if TYPE_CHECKING:
    from kubist.simulation.kubeletapi.process import Process

Command = Callable[["Process", list[str]], Awaitable[int]]
MAX_SLEEP = 24 * 60 * 60.0
AT_ONCE = 16
"""Paths that a command handles in one turn of the event loop."""


async def _in_turns(paths: Iterable[str]) -> AsyncIterator[str]:
    """Paths one by one. Other tasks of the event loop get their turn in between."""
    for count, path in enumerate(paths, 1):
        yield path
        if not count % AT_ONCE:
            await asyncio.sleep(0)


async def _true(_process: Process, _args: list[str]) -> int:
    return 0


async def _false(_process: Process, _args: list[str]) -> int:
    return 1


async def _echo(process: Process, args: list[str]) -> int:
    newline = "\n"
    if args[:1] == ["-n"]:
        args, newline = args[1:], ""
    elif args and args[0] in ("-e", "-ne", "-en"):
        raise Unsupported(f"echo {args[0]}")
    await process.write(" ".join(args) + newline)
    return 0


async def _env(process: Process, args: list[str]) -> int:
    if args:
        raise Unsupported(f"env {args[0]}")
    await process.write("".join(f"{name}={value}\n" for name, value in process.env.items()))
    return 0


async def _printenv(process: Process, args: list[str]) -> int:
    if not args:
        return await _env(process, args)
    found = [process.env[name] for name in args if name in process.env]
    await process.write("".join(f"{value}\n" for value in found))
    return 0 if len(found) == len(args) else 1


async def _hostname(process: Process, args: list[str]) -> int:
    if args:
        raise Unsupported(f"hostname {args[0]}")
    await process.write(f"{process.env['HOSTNAME']}\n")
    return 0


async def _pwd(process: Process, _args: list[str]) -> int:
    await process.write(f"{process.directory}\n")
    return 0


async def _cd(process: Process, args: list[str]) -> int:
    path = absolute(args[0] if args else process.env.get("HOME", "/"), process.directory)
    if not process.is_directory(path) and args:
        await process.complain(f"cd: can't cd to {args[0]}: No such file or directory")
        return 1
    process.directory = path
    return 0


async def _whoami(process: Process, _args: list[str]) -> int:
    await process.write("root\n")
    return 0


async def _date(process: Process, args: list[str]) -> int:
    if args not in ([], ["-u"], ["+%s"]):
        raise Unsupported(f"date {args[0]}")
    now = process.now()
    shown = str(int(now)) if args == ["+%s"] else time.strftime("%a %b %e %H:%M:%S UTC %Y", time.gmtime(now))
    await process.write(f"{shown}\n")
    return 0


async def _sleep(process: Process, args: list[str]) -> int:
    if args and args[0] in ("infinity", "inf"):
        seconds = MAX_SLEEP
    else:
        try:
            total = sum(_seconds(text) for text in args)
            seconds = -1.0 if math.isnan(total) else min(total, MAX_SLEEP)
        except ValueError:
            seconds = -1.0
    if not args or seconds < 0:
        await process.complain(f"sleep: invalid number '{args[0] if args else ''}'")
        return 1
    if not process.instant:
        await asyncio.sleep(seconds)
    return 0


def _seconds(text: str) -> float:
    units = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
    unit = units.get(text[-1:], 0.0)
    return float(text[:-1]) * unit if unit else float(text)


async def _cat(process: Process, args: list[str]) -> int:
    if not args or args == ["-"]:
        while piece := await process.io.read():
            await process.write(piece)
        return 0
    code = 0
    async for path in _in_turns(args):
        if path.startswith("-"):
            raise Unsupported(f"cat {path}")
        file = process.file(path)
        if file is None:
            why = (
                "Is a directory"
                if process.is_directory(absolute(path, process.directory))
                else "No such file or directory"
            )
            await process.complain(f"cat: can't open '{path}': {why}")
            code = 1
        else:
            await process.write(file.content)
    return code


async def _ls(process: Process, args: list[str]) -> int:
    options, paths = [a for a in args if a.startswith("-")], [a for a in args if not a.startswith("-")]
    if any(option not in ("-1", "-a", "-A") for option in options):
        raise Unsupported(f"ls {options[0]}")
    code = 0
    async for path in _in_turns(paths or ["."]):
        where = absolute(path, process.directory)
        if process.file(path) is not None:
            await process.write(f"{path}\n")
        elif process.is_directory(where):
            below = where.rstrip("/") + "/"
            held_paths = process.paths()
            names = {held[len(below) :].partition("/")[0] for held in held_paths if held.startswith(below)}
            await process.write("".join(f"{name}\n" for name in sorted(names)))
        else:
            await process.complain(f"ls: {path}: No such file or directory")
            code = 1
    return code


async def _mkdir(process: Process, args: list[str]) -> int:
    async for path in _in_turns(arg for arg in args if arg != "-p"):
        process.files.make_directory(absolute(path, process.directory))
    return 0


async def _touch(process: Process, args: list[str]) -> int:
    async for path in _in_turns(args):
        if process.file(path) is None:
            process.files.put(absolute(path, process.directory), File(b""))
    return 0


async def _mv(process: Process, args: list[str]) -> int:
    """Moves one file. The file that an HTTP probe asks for counts as present."""
    options = {arg for arg in args if arg.startswith("-")}
    paths = [arg for arg in args if not arg.startswith("-")]
    if len(paths) != 2 or options - {"-v", "-f", "-n"}:
        raise Unsupported(f"mv {' '.join(args)}"[:200])
    source, target = (absolute(path, process.directory) for path in paths)
    if process.is_directory(target):
        target = absolute(posixpath.basename(source), target)
    held = process.files.files.get(source)
    if held is None and process.probed not in (source, target):
        await process.complain(f"mv: can't rename '{paths[0]}': No such file or directory")
        return 1
    if held is not None:
        process.files.put(target, held)
        process.files.remove(source)
    if process.probed in (source, target) and source != target:
        process.answers_probe = process.probed == target
    if "-v" in options:
        await process.write(f"'{source}' -> '{target}'\n")
    return 0


async def _rm(process: Process, args: list[str]) -> int:
    options = {arg for arg in args if arg.startswith("-")}
    code = 0
    async for path in _in_turns(arg for arg in args if not arg.startswith("-")):
        process.spend(len(process.files.files) + len(process.files.directories))
        if absolute(path, process.directory) == process.probed:
            process.files.remove(process.probed)
            process.answers_probe = False
            continue
        if not process.files.remove(absolute(path, process.directory)) and not options & {"-f", "-rf", "-fr"}:
            await process.complain(f"rm: can't remove '{path}': No such file or directory")
            code = 1
    return code


async def _test(process: Process, args: list[str]) -> int:
    inverted = 0
    while inverted + 1 < len(args) and args[inverted] == "!":
        inverted += 1
    code = await _plain_test(process, args[inverted:])
    return 1 - min(code, 1) if inverted % 2 else code


async def _plain_test(process: Process, args: list[str]) -> int:
    """Test without a leading `!`."""
    match args:
        case []:
            return 1
        case [text]:
            return 0 if text else 1
        case ["-n", text]:
            return 0 if text else 1
        case ["-z", text]:
            return 1 if text else 0
        case ["-d", path]:
            return 0 if process.is_directory(absolute(path, process.directory)) else 1
        case ["-f", path]:
            return 0 if process.file(path) is not None else 1
        case ["-s", path]:
            file = process.file(path)
            return 0 if file is not None and file.content else 1
        case ["-e" | "-r", path]:
            where = absolute(path, process.directory)
            return 0 if process.file(path) is not None or process.is_directory(where) else 1
        case [left, "=" | "==", right]:
            return 0 if left == right else 1
        case [left, "!=", right]:
            return 0 if left != right else 1
        case _:
            raise Unsupported(f"test {' '.join(args)}"[:200])


async def _bracket(process: Process, args: list[str]) -> int:
    if args[-1:] != ["]"]:
        raise Unsupported("[")
    return await _test(process, args[:-1])


COMMANDS: dict[str, Command] = {
    "true": _true,
    ":": _true,
    "false": _false,
    "echo": _echo,
    "env": _env,
    "printenv": _printenv,
    "hostname": _hostname,
    "pwd": _pwd,
    "cd": _cd,
    "whoami": _whoami,
    "date": _date,
    "sleep": _sleep,
    "cat": _cat,
    "ls": _ls,
    "mkdir": _mkdir,
    "touch": _touch,
    "mv": _mv,
    "rm": _rm,
    "test": _test,
    "[": _bracket,
    "tar": tarcommand.tar,
}
"""Simulated commands, besides `sh`, `exit` and assignments, which `Process` handles."""
