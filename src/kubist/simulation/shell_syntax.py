"""Syntax of shell scripts, as far as `shell` simulates them: words with expansions, lists, if, while, for."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

MAX_SCRIPT = 10_000
"""Longer scripts are not simulated."""
MAX_DEPTH = 20

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPERATOR = re.compile(r"&&|\|\||;;|>>|<<|>&|<&|&>|[;&|()<>\n]")
_SPECIAL = set(" \t\n;&|()<>'\"\\$`#")


class Unknown(Exception):
    """The script contains a construct that is not simulated."""


class Part(NamedTuple):
    """Part of a word: literal `text`, a variable (`var`), arithmetic (`math`) or a command (`run`)."""

    kind: str
    text: str


Word = tuple[Part, ...]


@dataclass(slots=True)
class Simple:
    """A command with its words and the targets of its redirections."""

    words: list[Word] = field(default_factory=list)
    output: Word | None = None


@dataclass(slots=True)
class If:
    tests: list[tuple[list[Node], list[Node]]]
    otherwise: list[Node]


@dataclass(slots=True)
class While:
    test: list[Node]
    body: list[Node]
    until: bool


@dataclass(slots=True)
class For:
    name: str
    words: list[Word]
    body: list[Node]


@dataclass(slots=True)
class Group:
    body: list[Node]
    subshell: bool


@dataclass(slots=True)
class Pipeline:
    commands: list[Command]
    negated: bool
    joined: str
    """Operator before the pipeline: `&&`, `||`, or empty."""


Command = Simple | If | While | For | Group
Node = Pipeline
Token = str | Word
"""Operators are strings. Words are tuples."""


def parse(script: str) -> list[Node]:
    """Pipelines of a script. Unknown if a part of it is not simulated."""
    if len(script) > MAX_SCRIPT:
        raise Unknown
    reader = _Parser(_tokens(script))
    nodes = reader.sequence()
    if reader.at < len(reader.tokens):
        raise Unknown
    return nodes


def _tokens(script: str) -> list[Token]:
    tokens: list[Token] = []
    at = 0
    while at < len(script):
        char = script[at]
        if char in " \t":
            at += 1
        elif script.startswith("\\\n", at):
            at += 2
        elif char == "#":
            end = script.find("\n", at)
            at = end if end >= 0 else len(script)
        elif (operator := _OPERATOR.match(script, at)) is not None:
            if operator[0] in ("<<", ";;"):
                raise Unknown
            tokens.append(operator[0])
            at = operator.end()
        else:
            word, at = _word(script, at)
            tokens.append(word)
    return tokens


def _word(script: str, at: int) -> tuple[Word, int]:
    parts: list[Part] = []
    while at < len(script):
        char = script[at]
        if char == "'":
            end = script.find("'", at + 1)
            if end < 0:
                raise Unknown
            parts.append(Part("text", script[at + 1 : end]))
            at = end + 1
        elif char == '"':
            at = _double_quoted(script, at + 1, parts)
        elif char == "\\":
            parts.append(Part("text", script[at + 1 : at + 2]))
            at += 2
        elif char == "$":
            at = _expansion(script, at, parts)
        elif char == "`":
            raise Unknown
        elif char in _SPECIAL and char != "#":
            break
        else:
            start = at
            while at < len(script) and (script[at] not in _SPECIAL or (script[at] == "#" and at > start)):
                at += 1
            parts.append(Part("text", script[start:at]))
    return tuple(parts), at


def _double_quoted(script: str, at: int, parts: list[Part]) -> int:
    start = at
    parts.append(Part("text", ""))
    while at < len(script):
        char = script[at]
        if char == '"':
            parts.append(Part("text", script[start:at]))
            return at + 1
        if char == "`":
            raise Unknown
        if char == "\\" and script[at + 1 : at + 2] in ('"', "\\", "$", "`"):
            parts.append(Part("text", script[start:at] + script[at + 1]))
            at = start = at + 2
        elif char == "$":
            parts.append(Part("text", script[start:at]))
            at = start = _expansion(script, at, parts)
        else:
            at += 1
    raise Unknown


def _expansion(script: str, at: int, parts: list[Part]) -> int:
    """Reads an expansion that begins with `$`. Returns its end."""
    if script.startswith("$((", at):
        end = script.find("))", at)
        if end < 0:
            raise Unknown
        parts.append(Part("math", script[at + 3 : end]))
        return end + 2
    if script.startswith("$(", at):
        end = _closing(script, at + 1)
        parts.append(Part("run", script[at + 2 : end]))
        return end + 1
    if script.startswith("${", at):
        end = script.find("}", at)
        if end < 0 or not _NAME.fullmatch(script, at + 2, end):
            raise Unknown
        parts.append(Part("var", script[at + 2 : end]))
        return end + 1
    name = _NAME.match(script, at + 1)
    if name is None:
        raise Unknown
    parts.append(Part("var", name[0]))
    return name.end()


def _closing(script: str, at: int) -> int:
    """Position of the parenthesis that closes the one at `at`."""
    depth = 0
    for position in range(at, len(script)):
        depth += {"(": 1, ")": -1}.get(script[position], 0)
        if not depth:
            return position
    raise Unknown


_CLOSING = ("then", "elif", "else", "fi", "do", "done", "}")


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.at = 0
        self.depth = 0

    def sequence(self) -> list[Node]:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unknown
        nodes: list[Node] = []
        joined = ""
        while True:
            while self.peek() in (";", "\n"):
                self.at += 1
            if self.peek() in (None, ")") or self.keyword() in _CLOSING:
                break
            nodes.append(self.pipeline(joined))
            joined = ""
            after = self.peek()
            if after in ("&&", "||"):
                joined = str(after)
                self.at += 1
            elif after == "&":
                # A command in the background does not delay the script, but its end is not known.
                raise Unknown
        if joined:
            raise Unknown
        self.depth -= 1
        return nodes

    def pipeline(self, joined: str) -> Pipeline:
        negated = self.keyword() == "!"
        if negated:
            self.at += 1
        commands = [self.command()]
        while self.peek() == "|":
            self.at += 1
            while self.peek() == "\n":
                self.at += 1
            commands.append(self.command())
        return Pipeline(commands, negated, joined)

    def command(self) -> Command:
        word = self.keyword()
        found: Command
        if self.peek() == "(":
            self.at += 1
            found = Group(self.sequence(), subshell=True)
            self.expect(")")
        elif word == "{":
            self.at += 1
            found = Group(self.sequence(), subshell=False)
            self.expect_word("}")
        elif word == "if":
            found = self.if_()
        elif word in ("while", "until"):
            self.at += 1
            test = self.sequence()
            self.expect_word("do")
            found = While(test, self.sequence(), until=word == "until")
            self.expect_word("done")
        elif word == "for":
            found = self.for_()
        else:
            return self.simple()
        if self.peek() in (">", ">>", "<", ">&", "&>"):
            raise Unknown
        return found

    def if_(self) -> If:
        tests = []
        otherwise: list[Node] = []
        word: str | None = "if"
        while word in ("if", "elif"):
            self.at += 1
            test = self.sequence()
            self.expect_word("then")
            tests.append((test, self.sequence()))
            word = self.keyword()
        if word == "else":
            self.at += 1
            otherwise = self.sequence()
        self.expect_word("fi")
        return If(tests, otherwise)

    def for_(self) -> For:
        self.at += 1
        name = self.keyword()
        if name is None or not _NAME.fullmatch(name):
            raise Unknown
        self.at += 1
        self.expect_word("in")
        words = []
        while isinstance(token := self.peek(), tuple):
            words.append(token)
            self.at += 1
        while self.peek() in (";", "\n"):
            self.at += 1
        self.expect_word("do")
        body = self.sequence()
        self.expect_word("done")
        return For(name, words, body)

    def simple(self) -> Simple:
        command = Simple()
        while True:
            token = self.peek()
            if isinstance(token, tuple):
                command.words.append(token)
                self.at += 1
            elif token in (">", ">>", "<", ">&", "<&", "&>"):
                self.redirection(command, str(token))
            else:
                break
        if not command.words and command.output is None:
            raise Unknown
        return command

    def redirection(self, command: Simple, operator: str) -> None:
        self.at += 1
        target = self.peek()
        if not isinstance(target, tuple):
            raise Unknown
        self.at += 1
        number = ""
        if command.words and all(part.kind == "text" for part in command.words[-1]):
            number = "".join(part.text for part in command.words[-1])
        if number in ("1", "2") and operator in (">", ">>", ">&"):
            command.words.pop()
        if operator in (">", ">>", "&>") and number != "2":
            command.output = target

    def peek(self) -> Token | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def keyword(self) -> str | None:
        """The next token if it is one unquoted word."""
        token = self.peek()
        if isinstance(token, tuple) and len(token) == 1 and token[0].kind == "text":
            return token[0].text
        return None

    def expect(self, operator: str) -> None:
        if self.peek() != operator:
            raise Unknown
        self.at += 1

    def expect_word(self, word: str) -> None:
        if self.keyword() != word:
            raise Unknown
        self.at += 1
