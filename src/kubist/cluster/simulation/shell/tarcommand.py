"""`tar`, as `kubectl cp` and its relatives use it: `tar xf - -C DIR` and `tar cf - PATH`."""

from __future__ import annotations

import asyncio
import io
import posixpath
import tarfile
from collections.abc import Callable
from typing import TYPE_CHECKING

from kubist.cluster.simulation.shell.errors import NoSpace, Unsupported
from kubist.cluster.simulation.shell.filestore import ALWAYS, CONTAINER_LIMIT, File, absolute

if TYPE_CHECKING:
    from kubist.cluster.simulation.shell.shell import Shell

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
    flags, directory, paths = _options(words, shell.directory)
    if "f" not in flags or not set(flags) <= set("xcfmpvh"):
        raise Unsupported(f"tar {' '.join(words)}")
    if "x" in flags:
        return await _extract(shell, directory)
    if "c" in flags:
        return await _create(shell, directory, paths)
    raise Unsupported(f"tar {' '.join(words)}")


def _options(words: list[str], directory: str) -> tuple[str, str, list[str]]:
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
        found = await asyncio.to_thread(_members, bytes(archive))
    except (tarfile.TarError, EOFError, OSError, ValueError):
        await shell.complain("tar: invalid tar archive")
        return 1
    for path, file in found:
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
    found: list[tuple[str, File | None]] = []
    left = CONTAINER_LIMIT
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r|", tarinfo=_Member) as source:
        for member in source:
            if len(found) > _MEMBER_LIMIT or member.size > left:
                raise NoSpace
            if member.size < 0:
                raise tarfile.ReadError("negative size")
            if member.isdir():
                found.append((member.name, None))
            elif member.isreg() and not member.issparse():
                content = source.extractfile(member)
                assert content is not None
                left -= member.size
                found.append((member.name, File(content.read(), member.mode & 0o7777)))
    return found


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
    held: dict[str, File | None], directory: str, paths: list[str], spend: Callable[[int], None]
) -> tuple[list[_Named], list[str]]:
    """Members of a new archive, and the paths that do not exist. `held` has all files; None for a directory."""
    members: list[_Named] = []
    missing = []
    for path in paths:
        spend(len(held))
        where = absolute(path, directory)
        below = "/" if where == "/" else f"{where}/"
        names = sorted(name for name in held if name == where or name.startswith(below))
        if not names and where not in ALWAYS:
            missing.append(path)
        shown = posixpath.normpath(path.lstrip("/") or ".")
        members += [(shown + name[len(where) :], held[name]) for name in names]
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
