"""Simulated shell: runs scripts with the commands of `commands`. No program is executed."""

from __future__ import annotations

import math
import re
from collections.abc import Coroutine, Iterator
from typing import Any

from kubist.base.offload import away
from kubist.cluster.simulation.shell import syntax
from kubist.cluster.simulation.shell.commands import BUILTINS, COMMANDS, PREFIXES
from kubist.cluster.simulation.shell.container import Container, Pipe, Reader, Streams, Writer
from kubist.cluster.simulation.shell.errors import Exit, Failure, Incomplete, Jump, Unsupported
from kubist.cluster.simulation.shell.file_store import absolute
from kubist.cluster.simulation.shell.syntax import Command, Part, Pipeline, Script, Word, calculate, parse

CANNOT_RUN = 126
"""Exit code of commands that cannot be simulated: a shell's code for a command that cannot be executed."""
LINE_LIMIT = 64 * 1024
LONG_SCRIPT = 4096
"""Length in characters from which a script is parsed in a worker thread."""
DIRECTORIES = ("", "/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin")
"""Directories of programs."""
_MATH = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[^\sA-Za-z0-9_$]+")


def basename(command: str) -> str:
    """Name of a command without /bin/ and the like."""
    directory, _, name = command.rpartition("/")
    return name if directory in DIRECTORIES else command


def is_program(command: str) -> bool:
    """Whether a program can be simulated, at least in some of its uses."""
    return basename(command) in COMMANDS and basename(command) not in BUILTINS


class Shell:
    """A shell, or one inside of another: a script of `sh -c`, a subshell, or a part of a pipeline."""

    def __init__(self, container: Container, variables: dict[str, str]) -> None:
        self.container, self.budget = container, container.budget
        self.budget.spend(len(variables))
        self.variables = dict(variables)
        self.directory = "/"
        self.streams = Streams(container.read, container.io.write, container.complain)
        self.arguments = ["sh"]
        """Name and arguments of the script."""
        self.options: set[str] = set()
        """Letters of the options, such as e and x, and `pipefail`."""
        self.code = 0
        """Exit code of the last command."""
        self.substituted = 0
        """Exit code of the last command in `$( )`."""
        self.loops = 0
        """Loops that `break` can end."""

    def subshell(self, stdin: Reader | None = None, stdout: Writer | None = None) -> Shell:
        shell = Shell(self.container, self.variables)
        shell.directory, shell.arguments, shell.code = self.directory, self.arguments, self.code
        shell.options = set(self.options)
        shell.streams = Streams(
            stdin or self.streams.stdin, stdout or self.streams.stdout, self.streams.stderr
        )
        return shell

    async def run(self, command: list[str]) -> int:
        """Exit code of a program. 126, with a message on stderr, if it cannot be simulated."""
        try:
            if not command or not is_program(command[0]):
                raise Unsupported(command[0] if command else "an empty command")
            return await separately(self.call(command))
        except Unsupported as error:
            return await self._refuse(error)

    async def _refuse(self, error: Unsupported) -> int:
        why = f'no image runs, and "{str(error)[:200]}" cannot be simulated'
        text = f"kubist: pod {self.container.name} is simulated: {why}\n"
        await self.container.io.write(text.encode(errors="replace"), error=True)
        return CANNOT_RUN

    async def nested(self, words: list[str]) -> int:
        """`sh -c SCRIPT`, or a shell that reads its script from stdin."""
        shell = self.subshell()
        shell.options, shell.arguments = set(), ["sh"]
        rest = shell.set_options(words)
        if "c" not in shell.options:
            if rest and "s" not in shell.options:
                raise Unsupported(f"sh {rest[0]}")
            shell.arguments += rest
            return await separately(shell.lines())
        if not rest:
            raise Failure("-c requires an argument", 2)
        shell.arguments = rest[1:] or shell.arguments
        return await separately(shell.sequence(await shell.parsed(rest[0])))

    async def lines(self) -> int:
        """Runs the lines of stdin as scripts, as a shell without a script does."""
        is_client = self.streams.stdin == self.container.read
        rest, text = b"", ""
        while True:
            if is_client and self.container.prompt:
                await self.write("> " if text else self.container.prompt)
            piece = await self.streams.stdin()
            rest += piece
            *lines, rest = rest.split(b"\n") if piece else [rest, b""]
            if len(rest) + len(text) > LINE_LIMIT:
                raise Unsupported("a line that long")
            for line in lines:
                if is_client and not text:
                    self.budget.renew()
                await self.container.turn()
                text += line.decode(errors="replace") + "\n"
                try:
                    script = await self.parsed(text)
                    text = ""
                    self.code = await self.sequence(script) if script else self.code
                except Unsupported as error:
                    if isinstance(error, Incomplete) and text and piece:
                        continue
                    text, self.code = "", await self._refuse(error)
            if not piece:
                return self.code

    async def parsed(self, text: str) -> Script:
        if len(text) > self.budget.limits.script:
            raise Unsupported("a script that long")
        self.budget.spend(len(text))
        return await away(len(text) > LONG_SCRIPT and not self.container.foresees, parse, text)

    async def sequence(self, script: Script, *, tested: bool = False) -> int:
        code = 0
        for index, line in enumerate(script):
            if (line.joined == "&&" and code) or (line.joined == "||" and not code):
                continue
            self.code = code = await self._pipeline(line, tested=tested)
            decided = index + 1 < len(script) and bool(script[index + 1].joined)
            if code and "e" in self.options and not (tested or decided or line.negated):
                raise Exit(code)
        return code

    async def _pipeline(self, line: Pipeline, *, tested: bool) -> int:
        code = failed = 0
        if len(line.commands) == 1:
            code = await self._command(line.commands[0], tested=tested)
        else:
            stdin: Reader | None = None
            for command in line.commands:
                pipe = Pipe()
                stdout = None if command is line.commands[-1] else pipe.write
                code = await separately(self.subshell(stdin, stdout)._command(command, tested=tested))
                failed, stdin = code or failed, pipe.read
        code = failed if failed and "pipefail" in self.options else code
        return int(not code) if line.negated else code

    async def _command(self, command: Command, *, tested: bool) -> int:
        self.budget.step()
        self.budget.enter()
        await self.container.turn()
        streams, words = self.streams, []
        try:
            if isinstance(command.what, syntax.Simple):
                self.substituted = 0
                words = await self._fields(command.what.words)
            self.streams = await self._redirected(command) if command.redirects else streams
            if isinstance(command.what, syntax.Simple):
                return await self._simple(command.what.assignments, words)
            return await self._compound(command.what, tested=tested)
        except Failure as failure:
            await self.complain(f"{self.arguments[0]}: {failure}")
            return failure.code
        finally:
            self.budget.depth -= 1
            if words != ["exec"]:
                # The redirections of `exec` without a command remain in effect.
                self.streams = streams

    async def _redirected(self, command: Command) -> Streams:
        stdin, outputs = self.streams.stdin, [self.streams.stdout, self.streams.stderr]
        for stream, operator, target in command.redirects:
            if isinstance(target, int):
                outputs[stream - 1] = outputs[target - 1]
                continue
            path = self.path(await self.text(target))
            if operator == "<":
                stdin = self.container.reader(path)
            elif path in ("/dev/stdout", "/dev/stderr"):
                outputs[stream - 1] = outputs[path == "/dev/stderr"]
            else:
                outputs[stream - 1] = self.container.writer(path, append=operator == ">>")
        return Streams(stdin, *outputs)

    async def _simple(self, assignments: list[tuple[str, Word]], words: list[str]) -> int:
        before = {name: self.variables.get(name) for name, _ in assignments}
        for name, word in assignments:
            self.set_variable(name, await self.text(word))
        if not words:
            return self.substituted
        try:
            return await self.call(words)
        finally:
            for name, old in before.items():
                self.variables.pop(name, None)
                if old is not None:
                    self.variables[name] = old

    async def _compound(self, what: syntax.Compound, *, tested: bool) -> int:
        if isinstance(what, syntax.Group):
            if what.subshell:
                return await separately(self.subshell().sequence(what.body, tested=tested))
            return await self.sequence(what.body, tested=tested)
        if isinstance(what, syntax.If):
            for test, body in what.branches:
                if not await self.sequence(test, tested=True):
                    return await self.sequence(body, tested=tested)
            return 0
        self.loops += 1
        try:
            return await self._loop(what, tested=tested)
        finally:
            self.loops -= 1

    async def _loop(self, loop: syntax.While | syntax.For, *, tested: bool) -> int:
        clock, code = self.container.clock, 0
        began, before = clock.computed, None
        values: Iterator[str] = iter(())
        if isinstance(loop, syntax.For):
            values = iter(self.arguments[1:] if loop.words is None else await self._fields(loop.words))
        while True:
            if isinstance(loop, syntax.While):
                before = self._state()
                if bool(await self.sequence(loop.test, tested=True)) != loop.until:
                    return code
            elif (value := next(values, None)) is None:
                return code
            else:
                self.set_variable(loop.name, value)
            try:
                code = await self.sequence(loop.body, tested=tested)
            except Jump as jump:
                jump.levels -= 1
                if jump.levels:
                    raise
                if not jump.goes_on:
                    return 0
            if before is not None and clock.computed > began and self._state() == before:
                # Only time passed, so the loop never ends.
                await clock.sleep(math.inf)

    def _state(self) -> tuple[set[str], dict[str, str], int] | None:
        """State that decides whether a loop ends. None if a command really waits."""
        if self.container.clock.waits:
            return None
        paths = self.container.written()
        self.budget.spend(len(paths) + len(self.variables))
        return paths, dict(self.variables), self.container.reads

    async def call(self, words: list[str]) -> int:
        """Exit code of a command, which may be built into the shell."""
        self.budget.spend(len(words))
        place = 0
        while place + 1 < len(words) and basename(words[place]) in PREFIXES:
            place += 2 if words[place + 1] == "--" and place + 2 < len(words) else 1
        name = basename(words[place])
        if name not in COMMANDS:
            raise Unsupported(words[place])
        self.budget.enter()
        try:
            result = await COMMANDS[name](self, words[place + 1 :])
            if isinstance(result, int):
                return result
            output, code = result if isinstance(result, tuple) else (result, 0)
            await self.write(output)
            return code
        except Failure as failure:
            await self.complain(f"{name}: {failure}")
            return failure.code
        finally:
            self.budget.depth -= 1

    def set_options(self, words: list[str]) -> list[str]:
        """Options of `sh` and `set`, such as `-e` and `-euo pipefail`. Returns the words behind them."""
        rest = list(words)
        while rest and rest[0][:1] in ("-", "+") and rest[0] not in ("-", "--"):
            option = rest.pop(0)
            letters = set(option[1:])
            if option in ("--login", "--norc", "--noprofile"):
                continue
            if not option[1:].isalpha():
                raise Unsupported(option)
            if "o" in letters:
                name = rest.pop(0) if rest else ""
                if name not in ("pipefail", "errexit", "nounset", "xtrace"):
                    raise Unsupported(f"{option} {name}")
                letters |= {"e" if name == "errexit" else name}
            self.options = self.options | letters if option[0] == "-" else self.options - letters
        return rest[1:] if rest[:1] == ["--"] else rest

    def set_variable(self, name: str, value: str) -> None:
        self.budget.variables -= len(name) + len(value)
        if self.budget.variables < 0:
            raise Unsupported("variables that long")
        self.variables[name] = value

    def variable(self, name: str) -> str:
        arguments = self.arguments[1:]
        if name in self.variables:
            return self.variables[name]
        if name in ("@", "*"):
            return " ".join(arguments)
        if name.isdigit():
            return "".join(self.arguments[int(name) :][:1])
        special = {"?": self.code, "#": len(arguments), "$": 1, "RANDOM": self.container.random}
        if name not in special and name != "PWD":
            self.container.doubt(f"${name}")
        return self.directory if name == "PWD" else str(special.get(name, ""))

    def program(self, command: str) -> str:
        """Path of a program that is simulated, else an empty text."""
        if not is_program(command):
            return ""
        return command if command.startswith("/") else f"/bin/{command}"

    def path(self, text: str) -> str:
        return absolute(text, self.directory)

    async def write(self, text: str | bytes) -> None:
        await self.streams.stdout(text.encode(errors="replace") if isinstance(text, str) else text)

    async def complain(self, text: str) -> None:
        await self.streams.stderr(f"{text}\n".encode(errors="replace"))

    async def _fields(self, words: list[Word]) -> list[str]:
        """Expanded words. Unquoted values are split at their spaces."""
        fields: list[str] = []
        size = 0
        for word in words:
            expanded = await self._expanded(word, splits=True)
            size += sum(map(len, expanded)) + 1
            if size > self.budget.limits.words:
                raise Unsupported("a command that long")
            fields += expanded
        return fields

    async def text(self, word: Word) -> str:
        """Expanded word that is not split."""
        return "".join(await self._expanded(word, splits=False))

    async def _expanded(self, word: Word, *, splits: bool) -> list[str]:
        if len(word) == 1 and word[0].kind == "text":
            return [word[0].text]
        fields: list[list[str]] = []
        continues, size = False, 0
        for part in word:
            text = await self._value(part)
            size += len(text)
            if size > self.budget.limits.word:
                raise Unsupported("a word that long")
            pieces, ends_open = [text], True
            if splits and part.quoted and part[:2] == ("var", "@"):
                pieces = self.arguments[1:]
            elif splits and part.kind != "text" and not part.quoted:
                pieces, ends_open = text.split(), not text[-1:].isspace()
                continues = continues and not text[:1].isspace()
            for piece in pieces:
                if continues:
                    fields[-1].append(piece)
                else:
                    fields.append([piece])
                continues = False
            continues = ends_open if pieces else continues
        self.budget.copy(size)
        return ["".join(field) for field in fields]

    async def _value(self, part: Part) -> str:
        if part.kind == "text":
            return part.text
        if part.kind == "var":
            return self.variable(part.text)
        if part.kind == "math":
            words = _MATH.findall(part.text)
            return str(
                calculate([self.variable(word) or "0" if word[0].isidentifier() else word for word in words])
            )
        pipe = Pipe(self.budget.limits.word)
        shell = self.subshell(stdout=pipe.write)
        self.substituted = await separately(shell.sequence(part.lines))
        return (await pipe.read()).decode(errors="replace").rstrip("\n")


async def separately(run: Coroutine[Any, Any, int]) -> int:
    """Exit code of a separate shell, which `exit` ends."""
    try:
        return await run
    except Exit as end:
        return end.code
