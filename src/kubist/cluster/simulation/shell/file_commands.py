"""Commands of the simulated shell for files."""

from __future__ import annotations

import asyncio
import io
import math
import operator
import posixpath
import tarfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

from kubist.cluster.simulation.shell.errors import Failure, NoSpace, Unsupported
from kubist.cluster.simulation.shell.file_store import ALWAYS, CONTAINER_LIMIT, UNKNOWN, File, absolute
from kubist.cluster.simulation.shell.syntax import integer

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
    """Moves one file. The file that an HTTP probe requests counts as present."""
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
    results = {
        "-d": is_directory,
        "-f": file is not None or is_program,
        "-s": file is UNKNOWN or bool(file and file.content) or is_program,
        "-x": is_directory or is_program or bool(file and file.mode & 0o111),
    }
    return results.get(kind, file is not None or is_directory or is_program)


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


# `tar`, as `kubectl cp` and its relatives use it: `tar xf - -C DIR` and `tar cf - PATH`

_IGNORED = ("--no-same-permissions", "--no-same-owner", "--overwrite", "--warning=no-timestamp")
_ARCHIVE_LIMIT = 2 * CONTAINER_LIMIT
_MEMBER_LIMIT = 10_000
_HEADER_LIMIT = 8 * 1024
"""Bytes of an extended header, which has a long name or other properties of one member."""
_BLOCK = 512
_PIECE = 65536
_Named = tuple[str, File | None]
"""Path of a file or directory of an archive, and the file."""


class _Member(tarfile.TarInfo):
    """Member of an archive that a client sent. Long extended headers are rejected, because Python searches them with
    regular expressions whose time is quadratic, and no other thread runs meanwhile."""

    def _proc_pax(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        if self.size > _HEADER_LIMIT:
            raise tarfile.ReadError("extended header too long")
        return super()._proc_pax(archive)  # type: ignore[misc,no-any-return]


async def tar(shell: Shell, words: list[str]) -> int:
    """Extracts an archive from stdin, or writes one to stdout."""
    shell.container.doubt("tar")
    flags, directory, paths = _tar_options(words, shell.directory)
    if "f" not in flags or not set(flags) <= set("xcfmpvh"):
        raise Unsupported(f"tar {' '.join(words)}")
    if "x" in flags:
        return await _extract(shell, directory)
    if "c" in flags:
        return await _create(shell, directory, paths)
    raise Unsupported(f"tar {' '.join(words)}")


def _tar_options(words: list[str], directory: str) -> tuple[str, str, list[str]]:
    """One-letter flags, directory of `-C`, and paths."""
    flags, paths, rest = "", [], list(words)
    while rest:
        arg = rest.pop(0)
        if arg in _IGNORED:
            continue
        if arg in ("-C", "--directory") and rest:
            directory = absolute(rest.pop(0), directory)
        elif arg.startswith("--") and arg != "--":
            raise Unsupported(f"tar {arg}")
        elif arg == "--":
            paths += rest
            break
        elif arg.startswith("-") and arg != "-":
            flags += arg[1:]
        elif not flags and arg.isalpha() and not paths:
            flags += arg
        else:
            paths.append(arg)
    if paths[:1] == ["-"]:
        del paths[0]
    elif "f" in flags:
        raise Unsupported("tar with an archive file")
    return flags, directory, paths


async def _extract(shell: Shell, directory: str) -> int:
    archive, place = bytearray(), 0
    # Clients that cannot close stdin, such as those of WebSocket protocols before version 5, wait for tar to end.
    try:
        while (place := _end_of_members(archive, place)) >= 0 and (piece := await shell.streams.stdin()):
            archive += piece
            if len(archive) > _ARCHIVE_LIMIT:
                raise NoSpace
        # The archive is read in a thread, because a large one takes a while.
        members = await asyncio.to_thread(_members, bytes(archive))
    except (tarfile.TarError, EOFError, OSError, ValueError):
        await shell.complain("tar: invalid tar archive")
        return 1
    for path, file in members:
        where = absolute(path, directory)
        if file is None:
            shell.container.files.make_directory(where)
        else:
            shell.container.files.put(where, file)
    return 0


def _end_of_members(archive: bytearray, place: int) -> int:
    """Place of the next header that is not complete yet; -1 if the end of the archive, a block of zeros, is there."""
    while len(archive) >= place + _BLOCK:
        header = archive[place : place + _BLOCK]
        if not any(header):
            return -1
        try:
            size = _Member.frombuf(bytes(header), "utf-8", "replace").size
        except tarfile.TarError:
            return place
        if size < 0:
            raise tarfile.ReadError("negative size")
        place += _BLOCK + -(-size // _BLOCK) * _BLOCK
    return place


def _members(archive: bytes) -> list[tuple[str, File | None]]:
    """Paths of an archive with their files; None stands for a directory. Links and devices are skipped."""
    members: list[tuple[str, File | None]] = []
    left = CONTAINER_LIMIT
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r|", tarinfo=_Member) as source:
        for member in source:
            if len(members) > _MEMBER_LIMIT or member.size > left:
                raise NoSpace
            if member.size < 0:
                raise tarfile.ReadError("negative size")
            if member.isdir():
                members.append((member.name, None))
            elif member.isreg() and not member.issparse():
                content = source.extractfile(member)
                assert content is not None
                left -= member.size
                members.append((member.name, File(content.read(), member.mode & 0o7777)))
    return members


async def _create(shell: Shell, directory: str, paths: list[str]) -> int:
    members, missing = await asyncio.to_thread(
        _chosen, shell.container.all_files(), directory, paths, shell.budget.spend
    )
    for path in missing:
        await shell.complain(f"tar: {path}: No such file or directory")
    if len(members) > _MEMBER_LIMIT or sum(len(file.content) for _, file in members if file) > _ARCHIVE_LIMIT:
        raise NoSpace
    # The archive is made in a thread, because one with many files takes a while.
    archive = await asyncio.to_thread(_archive, members, int(shell.container.clock.now()))
    for start in range(0, len(archive), _PIECE):
        await shell.write(archive[start : start + _PIECE])
    return 1 if missing else 0


def _chosen(
    files: dict[str, File | None], directory: str, paths: list[str], spend: Callable[[int], None]
) -> tuple[list[_Named], list[str]]:
    """Members of a new archive, and the paths that do not exist. `files` has all files; None for a directory."""
    members: list[_Named] = []
    missing = []
    for path in paths:
        spend(len(files))
        where = absolute(path, directory)
        below = "/" if where == "/" else f"{where}/"
        names = sorted(name for name in files if name == where or name.startswith(below))
        if not names and where not in ALWAYS:
            missing.append(path)
        prefix = posixpath.normpath(path.lstrip("/") or ".")
        members += [(prefix + name[len(where) :], files[name]) for name in names]
    return members, missing


def _archive(members: list[_Named], now: int) -> bytes:
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, file in members:
            info = tarfile.TarInfo(name)
            info.mtime = now
            if file is None:
                info.type, info.mode = tarfile.DIRTYPE, 0o755
                archive.addfile(info)
            else:
                info.size, info.mode = len(file.content), file.mode
                archive.addfile(info, io.BytesIO(file.content))
    return output.getvalue()
