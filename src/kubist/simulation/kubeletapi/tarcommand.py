"""`tar`, as `kubectl cp` and its relatives use it: `tar xf - -C DIR` and `tar cf - PATH`."""

from __future__ import annotations

import asyncio
import io
import posixpath
import tarfile
from typing import TYPE_CHECKING

from kubist.simulation.kubeletapi.filestore import CONTAINER_LIMIT, File, NoSpace, absolute
from kubist.simulation.kubeletapi.shell import Unsupported

if TYPE_CHECKING:
    from kubist.simulation.kubeletapi.process import Process

_IGNORED = ("--no-same-permissions", "--no-same-owner", "--overwrite", "--warning=no-timestamp")
_ARCHIVE_LIMIT = 2 * CONTAINER_LIMIT
_MEMBER_LIMIT = 10_000
_BLOCK = 512


async def tar(process: Process, args: list[str]) -> int:
    """Extracts an archive from stdin, or writes one to stdout."""
    flags, directory, paths = _options(args, process.directory)
    if "f" not in flags or not set(flags) <= set("xcfmpvh"):
        raise Unsupported(f"tar {' '.join(args)}"[:200])
    if "x" in flags:
        return await _extract(process, directory)
    if "c" in flags:
        return await _create(process, directory, paths)
    raise Unsupported(f"tar {' '.join(args)}"[:200])


def _options(args: list[str], directory: str) -> tuple[str, str, list[str]]:
    """One-letter flags, directory of `-C`, and paths."""
    flags, paths, rest = "", [], list(args)
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


async def _extract(process: Process, directory: str) -> int:
    archive, place = bytearray(), 0
    # Clients that cannot close stdin, such as those of WebSocket protocols before version 5, wait for tar to end.
    while (place := _end_of_members(archive, place)) >= 0 and (piece := await process.io.read()):
        archive += piece
        if len(archive) > _ARCHIVE_LIMIT:
            raise NoSpace
    try:
        # The archive is read in a thread, because a large one takes a while.
        found = await asyncio.to_thread(_members, bytes(archive))
    except (tarfile.TarError, EOFError, OSError, ValueError):
        await process.complain("tar: invalid tar archive")
        return 1
    for path, file in found:
        where = absolute(path, directory)
        if file is None:
            process.files.make_directory(where)
        else:
            process.files.put(where, file)
    return 0


def _end_of_members(archive: bytearray, place: int) -> int:
    """Place of the next header that is not complete yet; -1 if the end of the archive, a block of zeros, is there."""
    while len(archive) >= place + _BLOCK:
        header = archive[place : place + _BLOCK]
        if not any(header):
            return -1
        try:
            size = tarfile.TarInfo.frombuf(bytes(header), "utf-8", "replace").size
        except tarfile.TarError:
            return place
        place += _BLOCK + -(-size // _BLOCK) * _BLOCK
    return place


def _members(archive: bytes) -> list[tuple[str, File | None]]:
    """Paths of an archive with their files; None stands for a directory. Links and devices are skipped."""
    found: list[tuple[str, File | None]] = []
    left = CONTAINER_LIMIT
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r|") as source:
        for member in source:
            if len(found) > _MEMBER_LIMIT or member.size > left:
                raise NoSpace
            if member.isdir():
                found.append((member.name, None))
            elif member.isreg() and not member.issparse():
                content = source.extractfile(member)
                assert content is not None
                left -= member.size
                found.append((member.name, File(content.read(), member.mode & 0o7777)))
    return found


async def _create(process: Process, directory: str, paths: list[str]) -> int:
    output, code = io.BytesIO(), 0
    with tarfile.open(fileobj=output, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in paths:
            where = absolute(path, directory)
            names = sorted(held for held in process.paths() if held == where or held.startswith(f"{where}/"))
            if not names and not process.is_directory(where):
                await process.complain(f"tar: {path}: No such file or directory")
                code = 1
            for name in names:
                _add(archive, process, name, posixpath.normpath(path.lstrip("/") or ".") + name[len(where) :])
    for start in range(0, output.tell(), 65536):
        await process.write(output.getbuffer()[start : start + 65536].tobytes())
    return code


def _add(archive: tarfile.TarFile, process: Process, name: str, shown: str) -> None:
    info = tarfile.TarInfo(shown)
    info.mtime = int(process.now())
    file = process.file(name)
    if file is None:
        info.type, info.mode = tarfile.DIRTYPE, 0o755
        archive.addfile(info)
    else:
        info.size, info.mode = len(file.content), file.mode
        archive.addfile(info, io.BytesIO(file.content))
