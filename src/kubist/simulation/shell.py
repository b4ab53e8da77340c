"""Simulated shell: duration, exit code and output of simple scripts. Nothing is executed.

A script with a command or construct that is not simulated has no known end.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from kubist.simulation import shell_syntax as syntax
from kubist.simulation.shell_budget import Budget
from kubist.simulation.shell_commands import ASSIGNMENT, COMMANDS
from kubist.simulation.shell_math import calculate
from kubist.simulation.shell_syntax import Command, Node, Part, Simple, Unknown, Word

SHELLS = ("sh", "bash", "ash", "dash")
MAX_OUTPUT = 4096
MAX_WORD = 10_000
MAX_WORDS = 1000
"""Commands with more arguments are not simulated."""


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


class Exit(Exception):
    pass


def run(argv: list[str], environment: dict[str, str], files: set[str], started: int = 0) -> Run | None:
    """Simulates a command. `files` are the paths that exist, `started` is the time that `date` shows at the start.
    None if the end of the command is not known."""
    if len(argv) > MAX_WORDS:
        return None
    shell = Shell(environment, files, started, Budget())
    try:
        shell.result.code = shell.call(argv)
    except Exit:
        pass
    except (Unknown, RecursionError):
        return None
    return shell.result


def basename(command: str) -> str:
    """Name of a command without /bin/ and the like."""
    directory, _, name = command.rpartition("/")
    return name if directory in ("", "/bin", "/usr/bin", "/usr/local/bin", "/sbin") else command


class Shell:
    """A shell, or one inside of another: a script of `sh -c`, or a command substitution."""

    def __init__(self, environment: dict[str, str], files: set[str], started: float, budget: Budget) -> None:
        self.budget = budget
        budget.spend(len(environment) + len(files))
        self.variables = dict(environment)
        self.result = Run(files=set(files))
        self.started = started
        self.reads_time = False
        self.stops_on_error = False
        self.fails_in_pipes = False
        """Whether `set -o pipefail` counts."""
        self.letters: set[str] = set()
        """Letters of the options, such as e and x."""

    def script(self, text: str) -> int:
        self.budget.spend(len(text))
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
        code, failed = 0, 0
        for command in node.commands:
            # A pipeline ends with its last command. Exits of the others end only themselves.
            code = self.apart(command) if len(node.commands) > 1 else self.command(command, tested=tested)
            failed = code or failed
        if self.fails_in_pipes:
            code = failed
        return int(not code) if node.negated else code

    def apart(self, command: Command) -> int:
        try:
            return self.command(command, tested=False)
        except Exit:
            if math.isinf(self.result.seconds):
                raise
            return self.result.code

    def command(self, command: Command, *, tested: bool) -> int:
        self.budget.step()
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
            except Exit:
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
            self.budget.spend(len(self.result.files) + len(self.variables))
            files, variables = set(self.result.files), dict(self.variables)
            if bool(self.sequence(command.test, tested=True)) != command.until:
                return code
            code = self.sequence(command.body, tested=tested)
            changed = files != self.result.files or variables != self.variables
            if not changed and not self.reads_time and self.result.seconds > before:
                # Only time passed, so the loop never ends.
                self.forever()

    def simple(self, command: Simple) -> int:
        output: str | None = None
        if command.output is not None:
            output = self.text(command.output)
        words = self.fields(command.words)
        while words and (assignment := ASSIGNMENT.fullmatch(words[0])):
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
        inner = Shell(self.variables, self.result.files, self.started, self.budget)
        inner.result = self.result
        rest = inner.set_options(words)
        if "c" not in inner.letters:
            raise Unknown
        if not rest:
            return 2
        try:
            return inner.script(rest[0])
        except Exit:
            if math.isinf(self.result.seconds):
                raise
            return self.result.code

    def set_options(self, words: list[str]) -> list[str]:
        """Options of `sh` and `set`, such as `-e` and `-euo pipefail`. Returns the words behind them."""
        rest = list(words)
        while rest and rest[0][:1] in ("-", "+") and rest[0] not in ("-", "--"):
            option = rest.pop(0)
            is_on, letters = option[0] == "-", option[1:]
            if not letters.isalpha():
                raise Unknown
            self.letters |= set(letters)
            if "e" in letters:
                self.stops_on_error = is_on
            if "o" in letters:
                name = rest.pop(0) if rest else ""
                if name == "pipefail":
                    self.fails_in_pipes = is_on
                elif name == "errexit":
                    self.stops_on_error = is_on
                elif name not in ("nounset", "xtrace"):
                    raise Unknown
        return rest

    def limited(self, words: list[str]) -> int:
        """Calls a program that something else may end. If it does not end by itself, the time is infinite."""
        try:
            return self.call(words)
        except Exit:
            return self.result.code

    def exit(self, code: int) -> None:
        self.result.code = code & 255
        raise Exit

    def forever(self) -> None:
        self.result.seconds = math.inf
        raise Exit

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
        texts, size = [], 0
        for part in word:
            texts.append(self.expand(part))
            size += len(texts[-1])
            if size > MAX_WORD:
                raise Unknown
        self.budget.spend(size)
        return "".join(texts)

    def expand(self, part: Part) -> str:
        if part.kind == "text":
            return part.text
        if part.kind == "var":
            if part.text not in self.variables:
                raise Unknown
            return self.variables[part.text]
        if part.kind == "math":
            return str(self.compute(part.text))
        self.budget.step()
        inner = Shell(self.variables, self.result.files, self.started + self.result.seconds, self.budget)
        try:
            inner.script(part.text)
        except Exit:
            if math.isinf(inner.result.seconds):
                raise Unknown from None
        self.reads_time |= inner.reads_time
        self.result.seconds += inner.result.seconds
        return inner.result.output.rstrip("\n")

    def compute(self, expression: str) -> int:
        """`$(( … ))` with two operands, or one."""
        words = re.findall(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[^\sA-Za-z0-9_$]+", expression)
        values = [self.variables.get(word, word) if word[0].isalpha() else word for word in words]
        return calculate(values)
