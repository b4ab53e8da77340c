"""`kubist logs`: the log of a detached server."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import BinaryIO

from kubist.cli import flags, help
from kubist.cli.data_dir import DATA_DIR, data_dir
from kubist.cli.exits import fail
from kubist.cli.instance import LOG, holder

FOLLOW = flags.Flag("follow", "bool", "false", "Wait for more lines until the server ends.", short="f")
TAIL = flags.Flag("tail", "int", "-1", "Number of last lines to show; -1 shows all.", short="n")
FLAGS = (DATA_DIR, FOLLOW, TAIL)
TITLE = """\
Prints the log of a server that `kubist serve --detach` started.

Usage:
  kubist logs [flags]
  kubist logs --follow --tail 20"""
_PAUSE = 0.2
_BLOCK = 1 << 16


def main(arguments: list[str]) -> int:
    values = flags.parse(arguments, {flag.name: flag for flag in FLAGS})
    if "help" in values:
        return help.show(TITLE, FLAGS)
    lines = _number(values.get("tail", ["-1"])[-1])
    follow = flags.is_on(values, "follow")
    directory = data_dir(values)
    try:
        file: BinaryIO = (directory / LOG).open("rb")
    except (FileNotFoundError, NotADirectoryError):
        return fail(_absence(directory))
    try:
        if lines >= 0:
            _seek_last(file, lines)
        _copy(file)
        while follow:
            running = holder(directory) is not None  # checked before the last lines are read
            file = _copy(_reopened(file, directory / LOG))
            if not running:
                break
            time.sleep(_PAUSE)
    finally:
        file.close()
    return 0


def _number(text: str) -> int:
    try:
        number = int(text)
        if number < -1:
            raise ValueError
    except ValueError:
        raise flags.FlagError(
            f'invalid argument "{text}" for "--tail" flag: must be a number of lines, or -1'
        ) from None
    return number


def _absence(directory: Path) -> str:
    if holder(directory) is not None:
        return (
            f"the server of {directory} writes its log to its own terminal: it was started without --detach"
        )
    return f"there is no log in {directory}: `kubist serve --detach` writes one"


def _seek_last(file: BinaryIO, lines: int) -> None:
    """Moves to the beginning of the last lines. Reads the file backwards in blocks."""
    end = file.seek(0, os.SEEK_END)
    if not lines or not end:
        return
    file.seek(end - 1)
    limit = lines if file.read(1) == b"\n" else lines - 1
    position, count = end, 0
    while position > 0:
        length = min(_BLOCK, position)
        position -= length
        file.seek(position)
        block = file.read(length)
        at = len(block)
        while (at := block.rfind(b"\n", 0, at)) >= 0:
            count += 1
            if count > limit:
                file.seek(position + at + 1)
                return
    file.seek(0)


def _copy(file: BinaryIO) -> BinaryIO:
    """Prints the rest of the file."""
    while block := file.read(_BLOCK):
        sys.stdout.write(block.decode(errors="replace"))
    sys.stdout.flush()
    return file


def _reopened(file: BinaryIO, path: Path) -> BinaryIO:
    """The same file, or the one that has replaced it. A file that became shorter is read from its beginning."""
    try:
        now = path.stat()
    except FileNotFoundError:
        return file
    if now.st_ino != os.fstat(file.fileno()).st_ino:
        _copy(file)
        file.close()
        return path.open("rb")
    if now.st_size < file.tell():
        file.seek(0)
    return file
