"""A forked child process with two pipes to its parent.

Through one it reports that it is ready, or why it failed. The parent closes the other to stop it. Only the parent
holds that end, so a child also stops when the parent dies.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import NoReturn

from kubist.api.discovery.counters import Counters
from kubist.base import eager_task
from kubist.errors import StartError

READY = b"\n"

Task = Callable[["Pipes"], StartError | None]
"""Main function of a child, until the parent stops it. Returns the error message if it failed."""


class Pipes:
    """The child's ends of the pipes."""

    def __init__(self, said: int, cut: int) -> None:
        self._said = said
        self.cut = cut
        """Descriptor that becomes readable when the child must stop."""

    def ready(self) -> None:
        os.write(self._said, READY)

    def fail(self, why: str) -> None:
        os.write(self._said, " ".join(why.split()).encode() + READY)


class Child:
    """The parent's view of a child. A new child calls `release` for each of the others, whose descriptors it
    inherits."""

    def __init__(self, name: str, task: Task, others: Callable[[], list[Child]]) -> None:
        self.name = name
        self._task = task
        self._others = others
        self.pid = 0
        self.said = -1
        """Descriptor for messages from the child. It reaches its end when the child ends."""
        self.ready = False
        self.problem = ""
        """Reason why the child could not start."""
        self.exit_code = 1
        self.started = 0.0
        self._stop_pipe = -1

    def start(self) -> None:
        said, saying = os.pipe()
        cut, stop_pipe = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(said)
            os.close(stop_pipe)
            for other in self._others():
                other.release()
            _live(self._task, Pipes(saying, cut))
        os.close(saying)
        os.close(cut)
        self.pid, self.said, self._stop_pipe = pid, said, stop_pipe
        self.ready, self.problem, self.started = False, "", time.monotonic()

    def release(self) -> None:
        """Closes the descriptors without stopping the child."""
        for descriptor in (self.said, self._stop_pipe):
            if descriptor >= 0:
                os.close(descriptor)
        self.said = self._stop_pipe = -1

    def listen(self) -> bool:
        """Reads a message from the child. Returns False if the child has ended."""
        heard = os.read(self.said, 1 << 16)
        if heard == READY:
            self.ready = True
        elif heard:
            self.problem = heard.decode(errors="replace").strip()
        return bool(heard)

    def stop(self) -> None:
        if self._stop_pipe >= 0:
            os.close(self._stop_pipe)
            self._stop_pipe = -1

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def reap(self) -> str:
        """Waits for the child to end, and describes how it ended."""
        _, status = os.waitpid(self.pid, 0)
        self.release()
        self.pid = 0
        code = os.waitstatus_to_exitcode(status)
        self.exit_code = code if code > 0 else 1
        return f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"


def _live(task: Task, pipes: Pipes) -> NoReturn:
    """Main function of a child. It never returns, because no clean-up code of the parent may run in the child."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        problem = task(pipes)
        if problem:
            pipes.fail(str(problem))
        code = problem.exit_code if problem else 0
    except BaseException as error:
        pipes.fail(f"{type(error).__name__}: {error}")
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


RESPONSE_SECONDS = 1.0


class Peers:
    """One process of the server. `paths` are the sockets of all processes; `number` is its own index."""

    def __init__(self, paths: list[str], number: int, own: socket.socket) -> None:
        self._paths = [path for index, path in enumerate(paths) if index != number]
        self._socket = own
        self._listener: asyncio.Server | None = None

    async def start(self, counters: Callable[[], Counters]) -> None:
        """Serves the counters of this process."""

        async def tell(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(counters().dump())
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

        self._listener = await asyncio.start_unix_server(tell, sock=self._socket)

    async def stop(self) -> None:
        if self._listener is not None:
            self._listener.close()

    async def ask(self) -> list[bytes]:
        """Counters of all other processes. A process that does not respond within RESPONSE_SECONDS is left out."""
        answers = await asyncio.gather(*map(_ask, self._paths), return_exceptions=True)
        return [answer for answer in answers if isinstance(answer, bytes)]


async def _ask(path: str) -> bytes:
    async with eager_task.timeout(RESPONSE_SECONDS):
        reader, writer = await asyncio.open_unix_connection(path)
        try:
            return await reader.read()
        finally:
            writer.close()
