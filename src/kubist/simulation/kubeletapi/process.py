"""Simulated process: runs the commands that `commands` knows, with the environment and files of its container."""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Callable

from kubist.meta.object import Object
from kubist.offload import away
from kubist.simulation.kubeletapi.commands import COMMANDS
from kubist.simulation.kubeletapi.containers import shown
from kubist.simulation.kubeletapi.filestore import File, Files, NoSpace, absolute
from kubist.simulation.kubeletapi.handlers import Io, Output
from kubist.simulation.kubeletapi.shell import Redirect, Step, Unsupported, Word, parse

CANNOT_RUN = 126
"""Exit code of commands that cannot be simulated: a shell's code for a command that cannot be executed."""
SHELLS = ("sh", "bash", "ash", "dash", "busybox")
SCRIPT_LIMIT = 64 * 1024
LINE_LIMIT = 64 * 1024
LONG_SCRIPT = 4096
"""Characters from which a script is parsed in a worker thread."""
STEP_LIMIT = 10_000
"""Commands that one script, or one line of an interactive shell, may run."""
DEPTH_LIMIT = 20
"""Shells in shells."""
ARGUMENTS_LIMIT = 2 * 1024 * 1024
"""Characters of all arguments of a command, and of all variables that a script sets."""
WORK_LIMIT = 20_000_000
"""Paths that all commands of a script may look at, about. Copied bytes count too, 64 as one."""
_COPIED_AT_ONCE = 64


def can_start(program: str) -> bool:
    """Whether a program can be simulated, at least in some of its uses."""
    return posixpath.basename(program) in (*SHELLS, *COMMANDS)


class Exit(Exception):
    """`exit N` ends the script."""


class Process:
    """Command in a simulated container."""

    def __init__(
        self,
        pod: Object,
        env: dict[str, str],
        known: dict[str, bytes],
        files: Files,
        io: Io,
        now: Callable[[], float],
        *,
        instant: bool = False,
        prompt: str = "",
    ) -> None:
        self.pod = pod
        self.env = env
        self.files = files
        self.io = io
        self.now = now
        self.instant = instant
        """Whether `sleep` does not wait."""
        self.prompt = prompt
        """Text that an interactive shell writes before it reads a line."""
        self.directory = "/"
        self.probed = ""
        """Path that the HTTP readiness probe of the container asks for."""
        self.answers_probe: bool | None = None
        """Whether the file at that path exists. None if no command moved it."""
        self._known = known
        self._code = 0
        self._steps = 0
        self._depth = 0
        self._work = 0
        self._assigned = 0
        """Characters of the variables that the script set."""
        self._redirects: dict[int, Callable[[bytes], None] | int] = {}

    async def run(self, command: list[str]) -> int:
        """Exit code of a command. 126, with a message on stderr, if it cannot be simulated."""
        try:
            return await self._run(command)
        except Exit:
            return self._code
        except Unsupported as error:
            return await self._refuse(error)
        except NoSpace:
            await self.complain("No space left on device")
            return 1

    async def _refuse(self, error: Unsupported) -> int:
        what = (
            f'pod {shown(self.pod)} is simulated: no image runs, and "{str(error)[:200]}" cannot be simulated'
        )
        await self.io.write(f"kubist: {what}\n".encode(), error=True)
        return CANNOT_RUN

    async def _run(self, command: list[str]) -> int:
        skipped = 0
        while skipped + 1 < len(command) and posixpath.basename(command[skipped]) == "busybox":
            skipped += 1
        program = posixpath.basename(command[skipped]) if command else ""
        args = command[skipped + 1 :]
        if program in SHELLS:
            if self._depth >= DEPTH_LIMIT:
                raise Unsupported("a shell that deep")
            env, directory = dict(self.env), self.directory
            self._depth += 1
            self.spend(len(env))
            try:
                return await self._shell(program, args)
            except Exit:
                return self._code
            finally:
                self.env, self.directory = env, directory
                self._depth -= 1
        if program == "exit":
            self._code = _exit_code(args, self._code)
            raise Exit
        if program not in COMMANDS:
            raise Unsupported(command[skipped] if command else "an empty command")
        try:
            return await COMMANDS[program](self, args)
        except NoSpace:
            await self.complain(f"{program}: No space left on device")
            return 1

    async def _shell(self, program: str, args: list[str]) -> int:
        options = {arg for arg in args if arg.startswith("-")}
        scripts = [arg for arg in args if not arg.startswith("-")]
        if options - {"-c", "-e", "-ec", "-ce", "-lc", "-l", "-i", "-x"}:
            raise Unsupported(f"{program} {' '.join(args)}"[:200])
        stops = bool(options & {"-e", "-ec", "-ce"})
        if options & {"-c", "-ec", "-ce", "-lc"}:
            if not scripts:
                await self.complain(f"{program}: -c requires an argument")
                return 2
            return await self.script(scripts[0], stops=stops)
        if scripts:
            raise Unsupported(f"{program} {scripts[0]}"[:200])
        return await self._lines()

    async def _lines(self) -> int:
        """Runs the lines of stdin as scripts, as a shell without a script does."""
        rest = b""
        while True:
            await self.write(self.prompt)
            piece = await self.io.read()
            rest += piece
            *lines, rest = rest.split(b"\n") if piece else [rest, b""]
            if len(rest) > LINE_LIMIT:
                raise Unsupported("a line that long")
            for line in lines:
                self._steps = self._work = 0
                await asyncio.sleep(0)
                try:
                    self._code = await self.script(line.decode(errors="replace"))
                except Unsupported as error:
                    self._code = await self._refuse(error)
            if not piece:
                return self._code

    async def script(self, text: str, *, stops: bool = False) -> int:
        """Exit code of the last command of a script. `stops`: the first failure ends it, as with `sh -e`."""
        if len(text) > SCRIPT_LIMIT:
            raise Unsupported("a script that long")
        for step in await away(len(text) > LONG_SCRIPT, parse, text):
            # Other tasks of the event loop get their turn.
            await asyncio.sleep(0)
            if (step.operator == "&&" and self._code) or (step.operator == "||" and not self._code):
                continue
            self._code = await self._step(step)
            if stops and self._code:
                break
        return self._code

    async def _step(self, step: Step) -> int:
        self._steps += 1
        if self._steps > STEP_LIMIT:
            raise Unsupported("a script that long")
        words = self._expand(step.words)
        count = step.assignments()
        for word in words[:count]:
            name, _, value = word.partition("=")
            self._assign(name, value)
        self._redirects = {redirect.stream: self._target(redirect) for redirect in step.redirects}
        try:
            return await self._run(words[count:]) if words[count:] else 0
        finally:
            self._redirects = {}

    def _expand(self, words: list[Word]) -> list[str]:
        found, size = [], 0
        for word in words:
            text = word.expand(self._value)
            size += len(text) + 1
            if size > ARGUMENTS_LIMIT:
                raise Unsupported("a command that long")
            found.append(text)
        self.spend(size // _COPIED_AT_ONCE)
        return found

    def _assign(self, name: str, value: str) -> None:
        self._assigned += len(value) + len(name)
        if self._assigned > ARGUMENTS_LIMIT:
            raise Unsupported("variables that long")
        self.env[name] = value

    def spend(self, work: int) -> None:
        """Counts work, so that no script keeps the server busy."""
        self._work += work
        if self._work > WORK_LIMIT:
            raise Unsupported("a script that takes so long")

    def _target(self, redirect: Redirect) -> Callable[[bytes], None] | int:
        if redirect.target is None:
            return 3 - redirect.stream
        path = absolute(redirect.target.expand(self._value), self.directory)
        if path == "/dev/null":
            return lambda _: None
        if path.startswith("/dev/"):
            raise Unsupported(f"> {path}")
        held = self.files.files.get(path)
        self.files.put(path, held if redirect.append and held is not None else File(b""))

        def append(data: bytes) -> None:
            old = self.files.files[path]
            self.files.check_room(len(data))
            self.spend((len(old.content) + len(data)) // _COPIED_AT_ONCE)
            self.files.put(path, File(old.content + data, old.mode))

        return append

    def _value(self, name: str) -> str:
        return str(self._code) if name == "?" else self.env.get(name, "")

    async def write(self, text: Output, *, stream: int = 1) -> None:
        data = text.encode(errors="replace") if isinstance(text, str) else text
        target = self._redirects.get(stream)
        if isinstance(target, int):
            stream, target = target, None
        if target is None:
            await self.io.write(data, error=stream == 2)
        else:
            target(data)

    async def complain(self, text: str) -> None:
        await self.write(f"{text}\n", stream=2)

    def file(self, path: str) -> File | None:
        where = absolute(path, self.directory)
        if where == "/dev/null":
            return File(b"")
        held = self.files.files.get(where)
        if held is None and where in self._known:
            return File(self._known[where])
        return held

    def paths(self) -> set[str]:
        """Absolute paths of all files and directories."""
        found = {*self._known, *self.files.files, *self.files.directories}
        self.spend(len(found))
        return found

    def all_files(self) -> dict[str, File | None]:
        """All files by absolute path. None stands for a directory."""
        found: dict[str, File | None] = dict.fromkeys(self.files.directories)
        found |= {path: File(content) for path, content in self._known.items()}
        self.spend(len(found) + len(self.files.files))
        return found | self.files.files

    def is_directory(self, path: str) -> bool:
        self.spend(len(self.files.files) + len(self.files.directories) + len(self._known))
        return self.files.is_directory(path) or any(held.startswith(f"{path}/") for held in self._known)


def _exit_code(args: list[str], last: int) -> int:
    if not args:
        return last
    try:
        return int(args[0]) & 0xFF
    except ValueError:
        return 2
