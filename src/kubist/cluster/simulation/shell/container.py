"""Simulated container, as all shells of one command see it: files, streams, time, and the budget of the command."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from kubist.cluster.simulation.shell.budget import EXEC, Budget
from kubist.cluster.simulation.shell.errors import Endless, Failure, Late, Unsupported
from kubist.cluster.simulation.shell.file_store import UNKNOWN, File, Files
from kubist.model.meta.object import Object

LONGEST_SLEEP = 24 * 60 * 60.0
"""Maximum seconds of one sleep of a command that really waits."""
PIPE_LIMIT = 1024 * 1024
"""Maximum bytes that a command may write into a pipe. The next command starts when it has ended."""


class Io(Protocol):
    """Streams of a command, in the event loop of the server."""

    async def read(self) -> bytes:
        """Next bytes of stdin; empty at its end."""
        ...

    async def write(self, data: bytes, *, error: bool = False) -> None:
        """Writes to stdout or stderr. BrokenPipeError if the client is gone."""
        ...


Reader = Callable[[], Awaitable[bytes]]
Writer = Callable[[bytes], Awaitable[None]]


class Streams(NamedTuple):
    stdin: Reader
    stdout: Writer
    stderr: Writer


class Clock:
    """Time of a command. Either the command waits, or its time is computed."""

    def __init__(self, now: Callable[[], float], *, waits: bool) -> None:
        self._now = now
        self._began = now()
        self.waits = waits
        self.computed = 0.0
        """Seconds for which the command would have waited."""
        self.deadline = math.inf
        """End of the innermost `timeout`, in seconds since the start of the command."""

    def now(self) -> float:
        return self._now() + self.computed

    def passed(self) -> float:
        """Seconds since the start of the command."""
        return self._now() - self._began if self.waits else self.computed

    async def sleep(self, seconds: float) -> None:
        left = max(self.deadline - self.passed(), 0.0)
        if self.waits:
            await asyncio.sleep(min(seconds, left, LONGEST_SLEEP))
        elif math.isinf(min(seconds, left)):
            raise Endless
        else:
            self.computed += min(seconds, left)
        if seconds > left:
            raise Late


class Pipe:
    """Output of a command in memory, which another one reads."""

    def __init__(self, limit: int = PIPE_LIMIT, content: bytes = b"") -> None:
        self._limit = limit
        self._content = bytearray(content)

    async def write(self, data: bytes) -> None:
        if len(self._content) + len(data) > self._limit:
            raise Unsupported("an output that long")
        self._content += data

    async def read(self) -> bytes:
        data, self._content = bytes(self._content), bytearray()
        return data


class Sink:
    """Streams of a command without stdin. Further output than the limit is dropped."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.output = bytearray()

    async def read(self) -> bytes:
        return b""

    async def write(self, data: bytes, *, error: bool = False) -> None:
        self.output += data[: self._limit - len(self.output)]


@dataclass(slots=True)
class Container:
    name: str
    """Namespace and name of the pod, for messages."""
    files: Files
    known: dict[str, bytes]
    """Files that were not written by commands, by absolute path."""
    io: Io
    clock: Clock
    user: Object | None
    """User of the processes, as in the status of the container. None if it is not known."""
    random: int = 0
    """Value of the variable RANDOM."""
    prompt: str = ""
    """Text that an interactive shell writes before it reads a line."""
    probed: str = ""
    """Path that the HTTP readiness probe of the container requests."""
    answers_probe: bool | None = None
    """Whether the file at that path exists. None if no command moved it."""
    foresees: bool = False
    """Whether the run of a container is foreseen, at once and without its streams. Variables, files and programs that
    its image may have are then not known, and a script that depends on them is Unsupported."""
    budget: Budget = field(default_factory=lambda: Budget(EXEC))
    reads: int = 0
    """Number of times that commands read the time or a file, because such a loop may end although it changes
    nothing."""

    async def read(self) -> bytes:
        """Stdin of the outermost shell."""
        self.doubt("stdin")
        return await self.io.read()

    async def complain(self, data: bytes) -> None:
        await self.io.write(data, error=True)

    async def turn(self) -> None:
        """Lets other tasks of the event loop run."""
        if not self.foresees:
            await asyncio.sleep(0)

    def doubt(self, what: str) -> None:
        """Raises Unsupported if the result depends on unknown content of the image."""
        if self.foresees:
            raise Unsupported(what)

    def file(self, path: str) -> File | None:
        if path == "/dev/null":
            return File(b"")
        file = self.files.files.get(path)
        return File(self.known[path]) if file is None and path in self.known else file

    def content(self, path: str) -> bytes | None:
        """Content of a file, None if there is none."""
        self.reads += 1
        file = self.file(path)
        if file is None or file is UNKNOWN:
            self.doubt(path)
            return None
        self.budget.copy(len(file.content))
        return file.content

    def all_files(self) -> dict[str, File | None]:
        """All files by absolute path. None stands for a directory."""
        self.budget.spend(self._size())
        files: dict[str, File | None] = dict.fromkeys(self.files.directories)
        files |= {path: File(content) for path, content in self.known.items()}
        return files | self.files.files

    def written(self) -> set[str]:
        """Paths that commands made. Those of directories end with a slash."""
        return {*self.files.files, *(f"{path}/" for path in self.files.directories)}

    def is_directory(self, path: str) -> bool:
        self.budget.spend(self._size())
        return self.files.is_directory(path) or any(known.startswith(f"{path}/") for known in self.known)

    def remove(self, path: str) -> bool:
        """Removes a file, or a directory with its files. False if there is none."""
        self.budget.spend(self._size())
        return self.files.remove(path)

    def _size(self) -> int:
        return len(self.files.files) + len(self.files.directories) + len(self.known)

    def reader(self, path: str) -> Reader:
        """Stdin of a command, from a file."""
        content = self.content(path)
        if content is None:
            raise Failure(f"can't open {path}: No such file or directory")
        return Pipe(content=content).read

    def writer(self, path: str, *, append: bool) -> Writer:
        """Stdout or stderr of a command, to a file."""
        if path == "/dev/null":
            return _discard
        old = self.file(path)
        if path.startswith("/dev/") and old is None:
            raise Unsupported(f"> {path}")
        self.files.put(path, old if append and old is not None else File(b""))

        async def write(data: bytes) -> None:
            file = self.files.files.get(path, File(b""))
            self.files.check_room(len(data))
            self.budget.copy(len(file.content) + len(data))
            if file is not UNKNOWN:
                self.files.put(path, File(file.content + data, file.mode))

        return write


async def _discard(_: bytes) -> None:
    pass
