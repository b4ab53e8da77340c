"""Simulated shell: duration, exit code and output of simple scripts. Nothing is executed.

A script with a command or construct that is not simulated has no known end.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from kubist.simulation import shell_syntax as syntax
from kubist.simulation.shell_math import calculate, integer
from kubist.simulation.shell_syntax import Command, Node, Part, Simple, Unknown, Word

SHELLS = ("sh", "bash", "ash", "dash")
MAX_STEPS = 2000
"""Scripts that run more commands are not simulated."""
MAX_OUTPUT = 4096
MAX_WORD = 10_000
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_SLEEP = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smhd]?)")
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(slots=True)
class Run:
    """Result of a command."""

    seconds: float = 0.0
    """Infinity: the command does not end."""
    code: int = 0
    reason: str = ""
    """Empty: Completed for code 0, else Error."""
    files: set[str] = field(default_factory=set)
    """Paths of the files that exist afterwards."""
    output: str = ""
    """First characters of the standard output."""
    written: dict[str, str] = field(default_factory=dict)
    """Output that was redirected to files, by path."""


class _Exit(Exception):
    pass


def run(argv: list[str], environment: dict[str, str], files: set[str]) -> Run | None:
    """Simulates a command. `files` are the paths that exist. None if its end is not known."""
    shell = _Shell(environment, files)
    try:
        shell.result.code = shell.call(argv)
    except _Exit:
        pass
    except (Unknown, RecursionError):
        return None
    return shell.result


def basename(command: str) -> str:
    """Name of a command without /bin/ and the like."""
    directory, _, name = command.rpartition("/")
    return name if directory in ("", "/bin", "/usr/bin", "/usr/local/bin", "/sbin") else command


class _Shell:
    def __init__(self, environment: dict[str, str], files: set[str]) -> None:
        self.variables = dict(environment)
        self.result = Run(files=set(files))
        self.stops_on_error = False
        self.steps = 0

    def script(self, text: str) -> int:
        return self.sequence(syntax.parse(text), tested=False)

    def sequence(self, nodes: list[Node], *, tested: bool) -> int:
        code = 0
        for index, node in enumerate(nodes):
            if (node.joined == "&&" and code) or (node.joined == "||" and not code):
                continue
            code = self.pipeline(node, tested=tested)
            decided = index + 1 < len(nodes) and bool(nodes[index + 1].joined)
            if code and self.stops_on_error and not (tested or decided or node.negated):
                self.exit(code)
        return code

    def pipeline(self, node: Node, *, tested: bool) -> int:
        code = 0
        for command in node.commands:
            # A pipeline ends with its last command. Exits of the others end only themselves.
            code = self.apart(command) if len(node.commands) > 1 else self.command(command, tested=tested)
        return int(not code) if node.negated else code

    def apart(self, command: Command) -> int:
        try:
            return self.command(command, tested=False)
        except _Exit:
            if math.isinf(self.result.seconds):
                raise
            return self.result.code

    def command(self, command: Command, *, tested: bool) -> int:
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise Unknown
        if isinstance(command, Simple):
            return self.simple(command)
        if isinstance(command, syntax.If):
            for test, body in command.tests:
                if not self.sequence(test, tested=True):
                    return self.sequence(body, tested=tested)
            return self.sequence(command.otherwise, tested=tested)
        if isinstance(command, syntax.Group):
            if not command.subshell:
                return self.sequence(command.body, tested=tested)
            try:
                return self.sequence(command.body, tested=tested)
            except _Exit:
                if math.isinf(self.result.seconds):
                    raise
                return self.result.code
        if isinstance(command, syntax.For):
            code = 0
            for value in self.fields(command.words):
                self.variables[command.name] = value
                code = self.sequence(command.body, tested=tested)
            return code
        return self.loop(command, tested=tested)

    def loop(self, command: syntax.While, *, tested: bool) -> int:
        code = 0
        before = self.result.seconds
        while True:
            files, variables = set(self.result.files), dict(self.variables)
            if bool(self.sequence(command.test, tested=True)) != command.until:
                return code
            code = self.sequence(command.body, tested=tested)
            changed = files != self.result.files or variables != self.variables
            if not changed and self.result.seconds > before:
                # Only time passed, so the loop never ends.
                self.forever()

    def simple(self, command: Simple) -> int:
        output: str | None = None
        if command.output is not None:
            output = self.text(command.output)
        words = self.fields(command.words)
        while words and (assignment := _ASSIGNMENT.fullmatch(words[0])):
            self.variables[assignment[1]] = assignment[2]
            words.pop(0)
        before = self.result.output
        code = self.call(words) if words else 0
        if output is not None:
            # The output of a command that is redirected is not output of the script.
            new, self.result.output = self.result.output[len(before) :], before
            if output != "/dev/null":
                self.result.files.add(output)
                self.result.written[output] = new
        return code

    def call(self, words: list[str]) -> int:
        name = basename(words[0])
        if name in SHELLS:
            return self.nested(words[1:])
        if name == "exec":
            if len(words) > 1:
                self.exit(self.call(words[1:]))
            return 0
        known = COMMANDS.get(name)
        if known is None:
            raise Unknown
        return known(self, words[1:])

    def nested(self, words: list[str]) -> int:
        """`sh -c SCRIPT`, with options such as -e and -x."""
        for index, word in enumerate(words):
            if not word.startswith("-"):
                raise Unknown
            if word in ("-o", "+o"):
                raise Unknown
            if "c" in word and not word.startswith("--"):
                if index + 1 >= len(words):
                    return 2
                inner = _Shell(self.variables, self.result.files)
                inner.result, inner.steps = self.result, self.steps
                inner.stops_on_error = any("e" in option for option in words[: index + 1])
                try:
                    return inner.script(words[index + 1])
                except _Exit:
                    if math.isinf(self.result.seconds):
                        raise
                    return self.result.code
                finally:
                    self.steps = inner.steps
        raise Unknown

    def exit(self, code: int) -> None:
        self.result.code = code & 255
        raise _Exit

    def forever(self) -> None:
        self.result.seconds = math.inf
        raise _Exit

    def print(self, text: str) -> None:
        self.result.output = (self.result.output + text)[:MAX_OUTPUT]

    def fields(self, words: list[Word]) -> list[str]:
        """Expanded words. An unquoted expansion is not split at spaces, unless it is a command."""
        found: list[str] = []
        for word in words:
            if len(word) == 1 and word[0].kind == "run":
                found += self.text(word).split()
            else:
                found.append(self.text(word))
        return found

    def text(self, word: Word) -> str:
        text = "".join(self.expand(part) for part in word)
        if len(text) > MAX_WORD:
            raise Unknown
        return text

    def expand(self, part: Part) -> str:
        if part.kind == "text":
            return part.text
        if part.kind == "var":
            if part.text not in self.variables:
                raise Unknown
            return self.variables[part.text]
        if part.kind == "math":
            return str(self.compute(part.text))
        inner = _Shell(self.variables, self.result.files)
        inner.steps = self.steps + 1
        if inner.steps > MAX_STEPS:
            raise Unknown
        try:
            inner.script(part.text)
        except _Exit:
            if math.isinf(inner.result.seconds):
                raise Unknown from None
        self.steps = inner.steps
        self.result.seconds += inner.result.seconds
        return inner.result.output.rstrip("\n")

    def compute(self, expression: str) -> int:
        """`$(( … ))` with two operands, or one."""
        words = re.findall(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[^\sA-Za-z0-9_$]+", expression)
        values = [self.variables.get(word, word) if word[0].isalpha() else word for word in words]
        return calculate(values)


def _true(_shell: _Shell, _words: list[str]) -> int:
    return 0


def _false(_shell: _Shell, _words: list[str]) -> int:
    return 1


def _exit(shell: _Shell, words: list[str]) -> int:
    shell.exit(integer(words[0]) if words else 0)
    return 0


def _sleep(shell: _Shell, words: list[str]) -> int:
    if not words:
        return 1
    for word in words:
        if word in ("infinity", "inf"):
            shell.forever()
        amount = _SLEEP.fullmatch(word)
        if amount is None:
            return 1
        shell.result.seconds += float(amount[1]) * _UNITS[amount[2]]
    return 0


def _echo(shell: _Shell, words: list[str]) -> int:
    end = "\n"
    while words and words[0] in ("-n", "-e", "-ne", "-en"):
        end = "" if "n" in words[0] else end
        words = words[1:]
    shell.print(" ".join(words) + end)
    return 0


def _printf(shell: _Shell, words: list[str]) -> int:
    if len(words) != 1 or "%" in words[0]:
        raise Unknown
    shell.print(words[0].replace("\\n", "\n").replace("\\t", "\t"))
    return 0


def _touch(shell: _Shell, words: list[str]) -> int:
    shell.result.files.update(word for word in words if not word.startswith("-"))
    return 0


def _rm(shell: _Shell, words: list[str]) -> int:
    shell.result.files.difference_update(words)
    return 0


def _expr(shell: _Shell, words: list[str]) -> int:
    value = calculate(words)
    shell.print(f"{value}\n")
    return int(not value)


def _set(shell: _Shell, words: list[str]) -> int:
    for word in words:
        if not re.fullmatch(r"[-+][eux]+", word):
            raise Unknown
        if "e" in word:
            shell.stops_on_error = word[0] == "-"
    return 0


def _export(shell: _Shell, words: list[str]) -> int:
    for word in words:
        if assignment := _ASSIGNMENT.fullmatch(word):
            shell.variables[assignment[1]] = assignment[2]
    return 0


def _tail(shell: _Shell, words: list[str]) -> int:
    if "/dev/null" in words and any(word in ("-f", "-F") for word in words):
        shell.forever()
    raise Unknown


def _test(shell: _Shell, words: list[str]) -> int:
    if words[:1] == ["!"]:
        return int(not _test(shell, words[1:]))
    if len(words) == 1:
        return int(not words[0])
    if len(words) == 2:
        operator, value = words
        if operator in ("-e", "-f", "-r", "-s", "-w"):
            return int(value not in shell.result.files)
        if operator in ("-z", "-n"):
            return int((not value) == (operator == "-n"))
        raise Unknown
    if len(words) != 3:
        raise Unknown
    left, operator, right = words
    if operator in ("=", "==", "!="):
        return int((left == right) == (operator == "!="))
    if operator not in _COMPARISONS:
        raise Unknown
    return int(not _COMPARISONS[operator](integer(left), integer(right)))


_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "-eq": lambda left, right: left == right,
    "-ne": lambda left, right: left != right,
    "-lt": lambda left, right: left < right,
    "-le": lambda left, right: left <= right,
    "-gt": lambda left, right: left > right,
    "-ge": lambda left, right: left >= right,
}


def _bracket(closing: str) -> Callable[[_Shell, list[str]], int]:
    def test(shell: _Shell, words: list[str]) -> int:
        if not words or words[-1] != closing:
            return 2
        return _test(shell, words[:-1])

    return test


COMMANDS: dict[str, Callable[[_Shell, list[str]], int]] = {
    "true": _true,
    ":": _true,
    "false": _false,
    "exit": _exit,
    "sleep": _sleep,
    "echo": _echo,
    "printf": _printf,
    "touch": _touch,
    "rm": _rm,
    "expr": _expr,
    "set": _set,
    "export": _export,
    "tail": _tail,
    "test": _test,
    "[": _bracket("]"),
    "[[": _bracket("]]"),
}
"""Simulated commands. docs/workloads.md lists them."""
