"""Python functions that answer exec and log requests of chosen pods.

They are ordinary functions and run in worker threads, so they may block and may use clients of the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar, cast

from kubist.cluster.simulation.shell.container import Io
from kubist.model.meta.object import Object
from kubist.model.meta.selectors import LabelSelector, parse_label_selector

Result = TypeVar("Result")
Output = str | bytes
ExecResult = None | int | Output | tuple[Output, int] | Iterator[Output]


THREADS = 64
"""Maximum number of concurrent handlers. Further calls wait."""


class Stdin:
    """Standard input of a command, for the thread of a handler."""

    def __init__(self, io: Io, loop: asyncio.AbstractEventLoop) -> None:
        self._io = io
        self._loop = loop
        self._rest = b""
        self._ended = False

    def _more(self) -> bool:
        if not self._ended:
            piece = asyncio.run_coroutine_threadsafe(self._io.read(), self._loop).result()
            self._ended = not piece
            self._rest += piece
        return not self._ended

    def read(self) -> bytes:
        """All bytes until the client closes stdin."""
        while self._more():
            pass
        text, self._rest = self._rest, b""
        return text

    def readline(self) -> bytes:
        """Next line with its newline; the last one may have none. Empty at the end."""
        while b"\n" not in self._rest and self._more():
            pass
        end = self._rest.find(b"\n") + 1 or len(self._rest)
        line, self._rest = self._rest[:end], self._rest[end:]
        return line

    def __iter__(self) -> Iterator[bytes]:
        while line := self.readline():
            yield line


class Exec:
    """Command that a client runs in a container. A handler gets it as its only argument.

    The handler returns the output, the exit code, or both as a tuple. To stream, it yields output or calls `write`
    and `write_error`.
    """

    def __init__(
        self,
        pod: Object,
        container: str,
        command: list[str],
        io: Io,
        loop: asyncio.AbstractEventLoop,
        *,
        tty: bool,
    ) -> None:
        self.pod = pod
        """Pod, as an object of the API."""
        self.container = container
        """Name of the container."""
        self.command = command
        """Program and arguments. For attach, the command of the container's spec; empty if it has none."""
        self.tty = tty
        self.stdin = Stdin(io, loop)
        self._io = io
        self._loop = loop

    def write(self, text: Output) -> None:
        """Writes to stdout. BrokenPipeError if the client is gone."""
        self._write(text, error=False)

    def write_error(self, text: Output) -> None:
        """Writes to stderr; with a terminal, to stdout."""
        self._write(text, error=True)

    def _write(self, text: Output, *, error: bool) -> None:
        written: Future[None] = asyncio.run_coroutine_threadsafe(
            self._io.write(_bytes(text), error=error), self._loop
        )
        written.result()

    def __repr__(self) -> str:
        return f"Exec({self.pod['metadata']['name']!r}, {self.container!r}, {self.command!r})"


@dataclass(frozen=True, slots=True)
class LogRequest:
    """Request for the log of a container. A handler gets it as its only argument.

    The handler returns the log so far, as text or as a list of lines; None stands for the default log.
    """

    pod: Object
    container: str
    previous: bool = False


ExecHandler = Callable[[Exec], ExecResult]
LogHandler = Callable[[LogRequest], str | list[str] | None]


class Threads:
    """Runs handlers in daemon threads of their own, at most THREADS at a time.

    The shared executor of the event loop is not used, because a handler may wait for its client for hours.
    """

    def __init__(self) -> None:
        self._free = asyncio.Semaphore(THREADS)

    async def run(self, function: Callable[[Any, Any], Result], handler: Any, argument: Any) -> Result:
        """`function(handler, argument)` in a thread. The thread goes on if the caller is cancelled."""
        await self._free.acquire()
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Result] = loop.create_future()

        def finish(result: Result | None, error: BaseException | None) -> None:
            self._free.release()
            if not done.done():
                if error is None:
                    done.set_result(cast("Result", result))
                else:
                    done.set_exception(error)

        def work() -> None:
            result, failure = None, None
            try:
                result = function(handler, argument)
            except BaseException as error:
                failure = error
            # The loop is closed if the server has stopped.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(finish, result, failure)

        threading.Thread(target=work, name="kubist-handler", daemon=True).start()
        return await done


class Registered(NamedTuple):
    selector: LabelSelector
    namespace: str | None
    function: Callable[[Any], Any]


class Handlers:
    """Handlers of one server. If several match a pod, the last one wins."""

    def __init__(self) -> None:
        self._exec: list[Registered] = []
        self._logs: list[Registered] = []

    def on_exec(self, selector: str, namespace: str | None, function: ExecHandler) -> None:
        self._exec.insert(0, Registered(parse_label_selector(selector), namespace, function))

    def on_logs(self, selector: str, namespace: str | None, function: LogHandler) -> None:
        self._logs.insert(0, Registered(parse_label_selector(selector), namespace, function))

    def exec_of(self, pod: Object) -> ExecHandler | None:
        return _find(self._exec, pod)

    def logs_of(self, pod: Object) -> LogHandler | None:
        return _find(self._logs, pod)


def _find(handlers: list[Registered], pod: Object) -> Callable[[Any], Any] | None:
    metadata = pod["metadata"]
    for handler in handlers:
        if handler.namespace in (None, metadata["namespace"]) and handler.selector.matches(
            metadata.get("labels")
        ):
            return handler.function
    return None


def run_exec(handler: ExecHandler, call: Exec) -> int:
    """Runs a handler in the current thread. Returns the exit code; 1 if it raises, with the traceback on stderr."""
    try:
        result: Any = handler(call)
        if inspect.isgenerator(result):
            result = _stream(result, call)
        if isinstance(result, tuple):
            output, result = result
            call.write(output)
        elif isinstance(result, (str, bytes)):
            call.write(result)
            result = 0
        return int(result or 0)
    except BrokenPipeError:
        raise
    except Exception:
        call.write_error(traceback.format_exc())
        return 1


def _stream(pieces: Any, call: Exec) -> Any:
    """Writes what a generator yields. Returns the value that it returns."""
    while True:
        try:
            call.write(next(pieces))
        except StopIteration as end:
            return end.value


def run_logs(handler: LogHandler, request: LogRequest) -> list[str] | None:
    """Lines of a handler; its traceback if it raises."""
    try:
        output = handler(request)
    except Exception:
        return traceback.format_exc().splitlines()
    if output is None:
        return None
    return output.splitlines() if isinstance(output, str) else [line.rstrip("\n") for line in output]


def _bytes(text: Output) -> bytes:
    return text.encode(errors="replace") if isinstance(text, str) else text
