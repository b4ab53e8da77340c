"""KubeletAPI: answers the requests for pods of simulated nodes. Implements `resources.kubelet.Kubelet`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from kubist.api.object_client import ObjectClient
from kubist.api.request import query_values
from kubist.api.resources.context import Context
from kubist.api.verbs.resource_request import Services
from kubist.base.http.conversation import Conversation
from kubist.base.http.messages import Answer
from kubist.cluster.simulation import scripting
from kubist.cluster.simulation.actors import KUBELET
from kubist.cluster.simulation.commands import Run, random_number
from kubist.cluster.simulation.containers import user_of
from kubist.cluster.simulation.kubelet_api import logs, portforward, proxy, remotecommand
from kubist.cluster.simulation.kubelet_api.handlers import (
    Exec,
    ExecHandler,
    Handlers,
    LogHandler,
    LogRequest,
    Threads,
    run_exec,
    run_logs,
)
from kubist.cluster.simulation.kubelet_api.logs import LogOptions
from kubist.cluster.simulation.kubelet_api.pods import (
    PodWatch,
    annotation,
    has_ended,
    is_running,
    qualified_name,
    spec_of,
    status_of,
)
from kubist.cluster.simulation.kubelet_api.remotecommand import Wanted, exit_status
from kubist.cluster.simulation.shell.budget import EXEC, FORESEEN, Budget
from kubist.cluster.simulation.shell.container import Clock, Container, Io, Sink
from kubist.cluster.simulation.shell.environment import command_of, environment, known_files
from kubist.cluster.simulation.shell.errors import Endless, NoSpace, Unsupported
from kubist.cluster.simulation.shell.file_store import Files, FileStore
from kubist.cluster.simulation.shell.shell import Shell, is_program, separately
from kubist.model.meta.object import Object

PROMPT = "# "
PROBE_SECONDS = 2.0
"""Time that a probe takes besides its period."""
_PROXIED = len(("namespaces", "NAMESPACE", "pods", "NAME", "proxy"))
"""Parts of a path before those that a proxy passes on."""
OUTPUT_LIMIT = 1024 * 1024
"""Maximum bytes of output that a container's command may leave in its log."""


class KubeletAPI:
    """The kubelet of all simulated nodes of a server."""

    def __init__(self, api: Services) -> None:
        self.handlers = Handlers()
        self._threads = Threads()
        self._api = api
        self._objects = api.cluster
        self._client = ObjectClient(api, KUBELET)
        self._pods = PodWatch(api.registry)
        self._files = FileStore(self._exists)
        self._tasks: set[asyncio.Task[None]] = set()

    def _exists(self, pod: Object) -> bool:
        metadata = pod["metadata"]
        stored_pod = self._objects.get("pods", metadata["name"], metadata["namespace"])
        return stored_pod is not None and stored_pod["metadata"]["uid"] == metadata["uid"]

    # Logs

    async def logs(self, ctx: Context, pod: Object, container: str) -> Answer:
        options = LogOptions.of(ctx.query, self._api.clock.now())
        handler = self.handlers.logs_of(pod)

        async def source(newest: Object) -> list[str]:
            return await self._lines(newest, container, handler, previous=options.previous)

        polls = handler is not None
        return await logs.answer(ctx.request, pod, container, options, source, self._pods, polls=polls)

    async def _lines(
        self, pod: Object, container: str, handler: LogHandler | None, *, previous: bool
    ) -> list[str]:
        """Lines of a log: from the handler, the annotation or the container's command, or a line that says that the
        container is simulated."""
        if handler is not None:
            lines = await self._threads.run(run_logs, handler, LogRequest(pod, container, previous))
            if lines is not None:
                return lines
        text = annotation(pod, "logs", container)
        if text is not None:
            return text.splitlines()
        output = await self._output(pod, container, previous=previous)
        if output is not None:
            return output.decode(errors="replace").splitlines()
        return [f'kubist: container "{container}" of pod {qualified_name(pod)} is simulated: no image runs']

    async def _output(self, pod: Object, container: str, *, previous: bool) -> bytes | None:
        """Output of the container's own command; None if it cannot be simulated."""
        command = self._command(pod, container)
        if not command or not is_program(command[0]):
            return None
        sink = Sink(OUTPUT_LIMIT)
        # Files that the command writes are not those of exec, because each reader of the log runs it.
        files = FileStore(lambda _: True).of(pod, container)
        shell = self._shell(pod, container, sink, files, waits=False, attempts_ago=int(previous))
        try:
            await separately(shell.call(command))
        except Endless:
            pass
        except (Unsupported, NoSpace):
            return None
        return bytes(sink.output)

    def _command(self, pod: Object, container: str) -> list[str]:
        spec = spec_of(pod, container)
        return command_of(spec, environment(pod, spec, self._objects))

    # Commands

    async def exec(self, ctx: Context, pod: Object, container: str) -> Answer:
        command = query_values(ctx.request.query, "command")
        options = Wanted.of(ctx.query)
        handler = self.handlers.exec_of(pod)

        async def run(io: Io) -> Object:
            if handler is not None:
                return await self._handle(handler, pod, container, command, io, tty=options.tty)
            terminal = Terminal(io) if options.tty else io
            shell = self._shell(pod, container, terminal, prompt=PROMPT if options.tty else "")
            probe = spec_of(pod, container).get("readinessProbe") or {}
            shell.container.probed = (probe.get("httpGet") or {}).get("path", "")
            code = await shell.run(command)
            if shell.container.answers_probe is False:
                await scripting.set_ready(self._client, pod, container, False)
            elif shell.container.answers_probe:
                seconds = probe.get("periodSeconds", 10) + PROBE_SECONDS
                self._api.clock.call_after(seconds, self._pass_probe, pod, container)
            return exit_status(code)

        return self._upgrade(ctx, pod, container, options, run)

    def _pass_probe(self, pod: Object, container: str) -> None:
        """Makes a container ready when its probe finds its file again."""
        task = asyncio.ensure_future(scripting.set_ready(self._client, pod, container, True))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def attach(self, ctx: Context, pod: Object, container: str) -> Answer:
        options, ends = Wanted.of(ctx.query), asyncio.Event()
        handler = self.handlers.exec_of(pod)
        interactive = bool(spec_of(pod, container).get("stdin"))
        if interactive and has_ended(pod, container):
            ends.set()

        async def run(io: Io) -> Object:
            if ends.is_set():
                # A command of `kubectl run -i` may end before its client attaches. The client still gets the output.
                lines = await self._lines(pod, container, self.handlers.logs_of(pod), previous=False)
                terminal = Terminal(io) if options.tty else io
                await terminal.write("".join(f"{line}\n" for line in lines).encode())
                return exit_status(0)
            if handler is not None:
                command = self._command(pod, container)
                return await self._handle(handler, pod, container, command, io, tty=options.tty)
            terminal = Terminal(io) if options.tty else io
            await terminal.write(
                f"kubist: pod {qualified_name(pod)} is simulated: no image runs\n".encode(), error=True
            )
            if not options.stdin:
                return exit_status(0)
            shell = self._shell(pod, container, terminal, prompt=PROMPT if options.tty else "")
            command = self._command(pod, container) if interactive else []
            code = await shell.run(command if command and is_program(command[0]) else ["sh"])
            if interactive:
                # The client was talking to the container's own process, so the container ends with it.
                ends.set()
                await scripting.end_now(self._client, pod, container, Run(code=code))
            return exit_status(0)

        return self._upgrade(ctx, pod, container, options, run, ends)

    async def _handle(
        self, handler: ExecHandler, pod: Object, container: str, command: list[str], io: Io, *, tty: bool
    ) -> Object:
        call = Exec(pod, container, command, io, asyncio.get_running_loop(), tty=tty)
        return exit_status(await self._threads.run(run_exec, handler, call))

    def _shell(
        self,
        pod: Object,
        container: str,
        io: Io,
        files: Files | None = None,
        *,
        waits: bool = True,
        attempts_ago: int = 0,
        prompt: str = "",
    ) -> Shell:
        spec, status = spec_of(pod, container), status_of(pod, container) or {}
        attempt = max(status.get("restartCount", 0) - attempts_ago, 0)
        inside = Container(
            qualified_name(pod),
            files or self._files.of(pod, container),
            known_files(pod, spec, self._objects),
            io,
            Clock(self._api.clock.now, waits=waits),
            user_of(pod["spec"], spec),
            random_number(pod, container, attempt),
            prompt,
            budget=Budget(EXEC if waits else FORESEEN),
        )
        return Shell(inside, environment(pod, spec, self._objects))

    def _upgrade(
        self,
        ctx: Context,
        pod: Object,
        container: str,
        options: Wanted,
        run: remotecommand.Run,
        ends: asyncio.Event | None = None,
    ) -> Answer:
        """Upgrade of the connection. It ends with the container. If `ends` is set, the command ends both."""

        def lasts(newest: Object) -> bool:
            return is_running(newest, container) or (ends is not None and ends.is_set())

        problem = "" if lasts(pod) else f'container not found ("{container}")'
        answer, conversation = remotecommand.answer(ctx.request, options, problem, run)

        if conversation is not None and not problem:
            self._end_with_pod(conversation, pod, lasts)
        return answer

    async def port_forward(self, ctx: Context, pod: Object) -> Answer:
        phase = (pod.get("status") or {}).get("phase", "")
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        problem = (
            "" if phase == "Running" else f'pod not found ("{name}_{pod["metadata"]["namespace"]}({uid})")'
        )
        current = pod

        def lasts(newest: Object) -> bool:
            nonlocal current
            current = newest
            return bool(newest["status"].get("phase") == "Running")

        answer, conversation = portforward.answer(ctx.request, lambda: current, problem)
        if conversation is not None:
            self._end_with_pod(conversation, pod, lasts)
        return answer

    def _end_with_pod(self, conversation: Conversation, pod: Object, lasts: Callable[[Object], bool]) -> None:
        """Ends a conversation when its pod is deleted or `lasts` is no longer true."""

        def changed(newest: Object | None) -> None:
            if newest is None or not lasts(newest):
                conversation.cancel()

        conversation.on_end = self._pods.follow(pod, changed)

    async def proxy(self, ctx: Context, pod: Object, port: int) -> Answer:
        path = "/" + "/".join(ctx.info.parts[_PROXIED:])
        if ctx.request.path.endswith("/") and not path.endswith("/"):
            path += "/"
        return await proxy.answer(ctx.request, pod, port, path, ctx.config.request_timeout)


# Terminal of a process: echoes the keys, edits lines, and ends lines of output with CR LF

_INTERRUPT, _END, _BACKSPACES, _KILL = 0x03, 0x04, (0x08, 0x7F), 0x15
_LINE_LIMIT = 4096
_AT_ONCE = 1024
"""Keys that are handled before other tasks of the event loop get their turn."""


class Terminal:
    """Streams of a process behind a terminal in canonical mode."""

    def __init__(self, io: Io) -> None:
        self._io = io
        self._line = bytearray()
        self._typed: Iterator[int] = iter(b"")
        """Keys that were read but not handled yet."""
        self._escape = False

    async def write(self, data: bytes, *, error: bool = False) -> None:
        await self._io.write(data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))

    async def read(self) -> bytes:
        """Next line with its newline; empty at the end of input."""
        while True:
            for count, key in enumerate(self._typed, 1):
                line = await self._press(key)
                if line is not None:
                    return line
                if not count % _AT_ONCE:
                    await asyncio.sleep(0)
            typed = await self._io.read()
            self._typed = iter(typed)
            if not typed:
                rest = bytes(self._line)
                self._line.clear()
                return rest

    async def _press(self, key: int) -> bytes | None:
        """Handles a key. Returns a line when it is complete; empty for the end of input."""
        line = self._line
        if self._escape:
            # Cursor keys and other sequences end with a letter or a tilde.
            self._escape = not (chr(key).isalpha() or key == 0x7E)
        elif key in b"\r\n":
            await self.write(b"\n")
            text = bytes(line) + b"\n"
            line.clear()
            return text
        elif key == _INTERRUPT:
            line.clear()
            await self.write(b"^C\n")
            return b"\n"
        elif key == _END:
            if not line:
                return b""
        elif key == _KILL:
            await self._io.write(b"\b \b" * len(line))
            line.clear()
        elif key in _BACKSPACES:
            if line:
                del line[-1]
                await self._io.write(b"\b \b")
        elif key == 0x1B:
            self._escape = True
        elif key >= 0x20 and len(line) < _LINE_LIMIT:
            line.append(key)
            await self._io.write(bytes([key]))
        return None
