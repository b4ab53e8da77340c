"""Commands of the simulated shell for files."""

from __future__ import annotations

import math
import operator
import posixpath
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

from kubist.cluster.simulation.shell.arithmetic import integer
from kubist.cluster.simulation.shell.errors import Failure, Unsupported
from kubist.cluster.simulation.shell.filestore import UNKNOWN, File

if TYPE_CHECKING:
    from kubist.cluster.simulation.shell.shell import Shell

Result = int | str | tuple[str, int]
"""Exit code of a command, its output, or both."""
Command = Callable[["Shell", list[str]], Awaitable[Result]]
AT_ONCE = 16
"""Paths that a command handles in one turn of the event loop."""
NO_FILE = "No such file or directory"


async def _in_turns(shell: Shell, paths: Iterable[str]) -> AsyncIterator[str]:
    """Paths one by one. Other tasks of the event loop get their turn in between."""
    for count, path in enumerate(paths, 1):
        yield path
        if not count % AT_ONCE:
            await shell.container.turn()


def _options(words: list[str]) -> tuple[set[str], list[str]]:
    """Letters of the options, and the other words."""
    options = {letter for word in words if word[:1] == "-" for letter in word[1:]}
    return options, [word for word in words if word[:1] != "-"]


async def _cat(shell: Shell, words: list[str]) -> Result:
    if not words or words == ["-"]:
        while piece := await shell.streams.stdin():
            await shell.write(piece)
        return 0
    code = 0
    async for word in _in_turns(shell, words):
        if word.startswith("-"):
            raise Unsupported(f"cat {word}")
        path = shell.path(word)
        if shell.container.file(path) is None and shell.container.is_directory(path):
            why = "Is a directory"
        elif (content := shell.container.content(path)) is not None:
            await shell.write(content)
            continue
        else:
            why = NO_FILE
        await shell.complain(f"cat: can't open '{word}': {why}")
        code = 1
    return code


async def _ls(shell: Shell, words: list[str]) -> Result:
    options, names = _options(words)
    if options - {"1", "a", "A"}:
        raise Unsupported(f"ls {' '.join(words)}")
    code = 0
    async for name in _in_turns(shell, names or ["."]):
        path = shell.path(name)
        if shell.container.file(path) is not None:
            await shell.write(f"{name}\n")
            continue
        shell.container.doubt(path)
        if shell.container.is_directory(path):
            below = path.rstrip("/") + "/"
            files = shell.container.all_files()
            listed = {file[len(below) :].partition("/")[0] for file in files if file.startswith(below)}
            await shell.write("".join(f"{entry}\n" for entry in sorted(listed)))
        else:
            await shell.complain(f"ls: {name}: {NO_FILE}")
            code = 1
    return code


async def _mkdir(shell: Shell, words: list[str]) -> Result:
    async for name in _in_turns(shell, _options(words)[1]):
        shell.container.files.make_directory(shell.path(name))
    return 0


async def _touch(shell: Shell, words: list[str]) -> Result:
    async for name in _in_turns(shell, _options(words)[1]):
        path = shell.path(name)
        if shell.container.file(path) is None:
            shell.container.files.put(path, File(b""))
    return 0


async def _mv(shell: Shell, words: list[str]) -> Result:
    """Moves one file. The file that an HTTP probe asks for counts as present."""
    options, names = _options(words)
    if len(names) != 2 or options - {"v", "f", "n"}:
        raise Unsupported(f"mv {' '.join(words)}")
    container = shell.container
    source, target = (shell.path(name) for name in names)
    if container.is_directory(target):
        target = shell.path(posixpath.join(target, posixpath.basename(source)))
    file = container.files.files.get(source)
    if file is None and container.probed not in (source, target):
        container.doubt(source)
        raise Failure(f"can't rename '{names[0]}': {NO_FILE}")
    if file is not None:
        container.files.put(target, file)
        container.files.remove(source)
    if container.probed in (source, target) and source != target:
        container.answers_probe = container.probed == target
    return f"'{source}' -> '{target}'\n" if "v" in options else 0


async def _rm(shell: Shell, words: list[str]) -> Result:
    options, names = _options(words)
    container, code = shell.container, 0
    async for name in _in_turns(shell, names):
        path = shell.path(name)
        removed = container.remove(path)
        if path == container.probed:
            container.answers_probe = False
        elif not removed and "f" not in options and not container.foresees:
            await shell.complain(f"rm: can't remove '{name}': {NO_FILE}")
            code = 1
    return code


async def _tail(shell: Shell, words: list[str]) -> Result:
    if "/dev/null" in words and any(word in ("-f", "-F") for word in words):
        await shell.container.clock.sleep(math.inf)
        return 0
    raise Unsupported(f"tail {' '.join(words)}")


async def _test(shell: Shell, words: list[str]) -> int:
    inverted = 0
    while inverted + 1 < len(words) and words[inverted] == "!":
        inverted += 1
    return int(_is_true(shell, words[inverted:]) == bool(inverted % 2))


def _is_true(shell: Shell, words: list[str]) -> bool:
    match words:
        case []:
            return False
        case [text] | ["-n", text]:
            return bool(text)
        case ["-z", text]:
            return not text
        case [("-d" | "-e" | "-f" | "-r" | "-s" | "-w" | "-x") as kind, name]:
            return _is_file(shell, kind, shell.path(name))
        case [left, "=" | "==", right]:
            return left == right
        case [left, "!=", right]:
            return left != right
        case [left, comparison, right] if comparison in _COMPARISONS:
            return _COMPARISONS[comparison](integer(left), integer(right))
    raise Unsupported(f"test {' '.join(words)}")


def _is_file(shell: Shell, kind: str, path: str) -> bool:
    """Whether a path is a file or directory of a kind. In a foreseen run, files that no command made do not exist."""
    container, file = shell.container, shell.container.file(path)
    is_directory = file is None and container.is_directory(path)
    is_program = bool(shell.program(path))
    if kind in ("-d", "-x") and file is None and not (is_directory or is_program):
        container.doubt(f"test {kind} {path}")
    container.reads += kind == "-s"
    found = {
        "-d": is_directory,
        "-f": file is not None or is_program,
        "-s": file is UNKNOWN or bool(file and file.content) or is_program,
        "-x": is_directory or is_program or bool(file and file.mode & 0o111),
    }
    return found.get(kind, file is not None or is_directory or is_program)


_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    f"-{name}": getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")
}


async def _bracket(shell: Shell, words: list[str]) -> Result:
    if words[-1:] not in (["]"], ["]]"]):
        raise Failure("missing ]", 2)
    return await _test(shell, words[:-1])


COMMANDS: dict[str, Command] = {
    "cat": _cat,
    "ls": _ls,
    "mkdir": _mkdir,
    "touch": _touch,
    "mv": _mv,
    "rm": _rm,
    "tail": _tail,
    "test": _test,
    "[": _bracket,
    "[[": _bracket,
}
