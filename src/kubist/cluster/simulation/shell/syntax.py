"""Syntax of shell scripts, as far as they are simulated: lists, pipelines, redirection, if, while, until, for, groups.

Everything else is Unsupported.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from kubist.cluster.simulation.shell.errors import Incomplete, Unsupported

MAX_DEPTH = 20
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")
_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[?@*#$0-9]")
_BLANKS = re.compile(r"(?:[ \t\r]|\\\n|#[^\n]*)+")
_KEYWORD = re.compile(r"(?:[a-z]+|[!{}])(?=[\s;&|()<>]|$)")
_REDIRECTION = re.compile(r"([0-9]?)(>>|>&|<<|<&|>|<)|&>")
_PLAIN = re.compile(r"[^\s;&|()<>'\"\\$`]+")
_QUOTED = re.compile(r"[^\"\\$`]+")
_ENDS = " \t\r\n;&|()<>"
_ESCAPED = ('"', "\\", "$", "`")
_OTHERS = ("then", "elif", "else", "fi", "do", "done", "}", "in", "case", "esac", "function", "select")
"""Keywords that no command begins with, and those of commands that are not simulated."""


class Part(NamedTuple):
    """Part of a word: literal `text`, a variable (`var`), arithmetic (`math`), or the output of commands (`run`)."""

    kind: str
    text: str
    quoted: bool = False
    """An unquoted value is split at its spaces."""
    lines: tuple[Pipeline, ...] = ()


Word = tuple[Part, ...]


class Redirect(NamedTuple):
    """Redirection of a stream: 0, 1 or 2."""

    stream: int
    operator: str
    """`<`, `>` or `>>`."""
    target: Word | int
    """A file, or another stream."""


class Simple(NamedTuple):
    assignments: list[tuple[str, Word]]
    words: list[Word]


class If(NamedTuple):
    branches: list[tuple[Script, Script]]
    """Tests and the scripts behind them. The test of `else` is empty."""


class While(NamedTuple):
    test: Script
    body: Script
    until: bool


class For(NamedTuple):
    name: str
    words: list[Word] | None
    """None: the arguments of the script."""
    body: Script


class Group(NamedTuple):
    body: Script
    subshell: bool


Compound = If | While | For | Group


class Command(NamedTuple):
    what: Simple | Compound
    redirects: list[Redirect]


class Pipeline(NamedTuple):
    commands: list[Command]
    negated: bool
    joined: str
    """Operator before the pipeline: `&&`, `||`, or empty."""


Script = tuple[Pipeline, ...]


def parse(text: str) -> Script:
    """Pipelines of a script. Raises Unsupported."""
    return _Parser(text).sequence()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0

    def sequence(self, *ends: str) -> Script:
        """Pipelines up to one of the words that end them, or up to the end of the script. The word is left unread."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unsupported("a script that deep")
        lines: list[Pipeline] = []
        joined = ""
        while True:
            self.skip("\n" if joined else "\n;")
            if not joined and self.is_end(ends):
                break
            lines.append(self.pipeline(joined))
            joined = self.take("&&") or self.take("||")
            if not joined and self.peek() == "&":
                # A command in the background does not delay the script, but its end is not known.
                raise Unsupported("&")
        self.depth -= 1
        return tuple(lines)

    def is_end(self, ends: tuple[str, ...]) -> bool:
        char = self.peek()
        if not char and ends:
            raise Incomplete(f"a script without {ends[-1]}")
        return not char or (char == ")" and ")" in ends) or self.keyword() in ends

    def pipeline(self, joined: str) -> Pipeline:
        negated = bool(self.take_keyword("!"))
        commands = [self.command()]
        while self.peek() == "|" and not self.text.startswith("||", self.at):
            self.at += 1
            self.skip("\n")
            commands.append(self.command())
        return Pipeline(commands, negated, joined)

    def command(self) -> Command:
        redirects: list[Redirect] = []
        what = self.compound() or self.simple(redirects)
        self.skip()
        while self.redirect(redirects):
            self.skip()
        return Command(what, redirects)

    def compound(self) -> Compound | None:
        if self.take("("):
            return Group(self.until(")"), subshell=True)
        word = self.keyword()
        if word in _OTHERS:
            raise Unsupported(word)
        if self.take_keyword("{"):
            return Group(self.until("}"), subshell=False)
        if self.take_keyword("if"):
            return self.if_()
        if word in ("while", "until"):
            self.at += len(word)
            test = self.until("do")
            return While(test, self.until("done"), until=word == "until")
        return self.for_() if self.take_keyword("for") else None

    def until(self, end: str) -> Script:
        """Pipelines up to and including a word."""
        lines = self.sequence(end)
        self.at += len(end)
        return lines

    def if_(self) -> If:
        ends = ("elif", "else", "fi")
        branches = [(self.until("then"), self.sequence(*ends))]
        while self.take_keyword("elif"):
            branches.append((self.until("then"), self.sequence(*ends)))
        if self.take_keyword("else"):
            branches.append(((), self.sequence("fi")))
        self.take_keyword("fi")
        return If(branches)

    def for_(self) -> For:
        name = _NAME.match(self.text, self.at)
        if name is None:
            raise Unsupported("for")
        self.at = name.end()
        self.skip("\n")
        words: list[Word] | None = None
        if self.take_keyword("in"):
            words = []
            while self.peek() not in ("", ";", "\n"):
                words.append(self.word())
                self.skip()
        self.skip("\n;")
        if not self.take_keyword("do"):
            raise self.unexpected()
        return For(name[0], words, self.until("done"))

    def simple(self, redirects: list[Redirect]) -> Simple:
        command = Simple([], [])
        while True:
            self.skip()
            if self.redirect(redirects):
                continue
            char = self.peek()
            if char in ("", "\n", ";", "|", "&", ")"):
                break
            name = _ASSIGNMENT.match(self.text, self.at)
            if name is not None and not command.words:
                self.at = name.end()
                command.assignments.append((name[1], self.word(is_value=True)))
            else:
                command.words.append(self.word())
        if not command.words and not command.assignments and not redirects:
            raise self.unexpected()
        return command

    def redirect(self, redirects: list[Redirect]) -> bool:
        match = _REDIRECTION.match(self.text, self.at)
        if match is None:
            return False
        operator, stream = match[2] or "&>", match[1] or ("0" if match[2] == "<" else "1")
        self.at = match.end()
        self.skip()
        target = self.word()
        if operator == ">&" and stream in "12" and target in ((Part("text", "1"),), (Part("text", "2"),)):
            redirects.append(Redirect(int(stream), ">", int(target[0].text)))
        elif (operator in (">", ">>", "&>") and stream in "12") or operator + stream == "<0":
            redirects.append(Redirect(int(stream), operator.removeprefix("&"), target))
        else:
            raise Unsupported(match[0])
        if operator == "&>":
            redirects.append(Redirect(2, ">", 1))
        return True

    def word(self, *, is_value: bool = False) -> Word:
        """The next word. Only the value of a variable may be empty."""
        parts: list[Part] = []
        quoted = False
        while (char := self.peek()) and (quoted or char not in _ENDS):
            if plain := (_QUOTED if quoted else _PLAIN).match(self.text, self.at):
                parts.append(Part("text", plain[0], quoted))
                self.at = plain.end()
            elif char == '"':
                quoted = not quoted
                parts.append(Part("text", "", quoted=True))
                self.at += 1
            elif char == "'":
                self.at += 1
                parts.append(Part("text", self.up_to("'"), quoted=True))
            elif char == "\\":
                self.at += not quoted or self.text[self.at + 1 : self.at + 2] in _ESCAPED
                parts.append(Part("text", self.peek(), quoted=True))
                self.at += 1
            elif char == "$":
                parts.append(self.expansion(quoted))
            else:
                raise Unsupported(char)
        if quoted or not (parts or is_value):
            raise self.unexpected()
        return tuple(parts)

    def expansion(self, quoted: bool) -> Part:
        """Expansion that begins with `$`."""
        if self.take("$(("):
            return Part("math", self.up_to("))"), quoted)
        if self.take("$("):
            return Part("run", "", quoted, self.until(")"))
        if self.take("${"):
            name = self.up_to("}")
            if not _PARAMETER.fullmatch(name):
                raise Unsupported(f"${{{name}}}")
            return Part("var", name, quoted)
        self.at += 1
        if match := _PARAMETER.match(self.text, self.at):
            self.at = match.end()
            return Part("var", match[0], quoted)
        if self.peek() in ("!", "-"):
            raise Unsupported(f"${self.peek()}")
        return Part("text", "$", quoted)

    def unexpected(self) -> Unsupported:
        """Error for the next character."""
        return Unsupported(self.peek()) if self.peek() else Incomplete("a script that ends so")

    def up_to(self, end: str) -> str:
        """Text up to the next `end`, which is consumed."""
        start, place = self.at, self.text.find(end, self.at)
        if place < 0:
            raise Incomplete(f"unterminated {end}")
        self.at = place + len(end)
        return self.text[start:place]

    def skip(self, others: str = "") -> None:
        """Moves past blanks and comments, and past other characters."""
        while True:
            if blanks := _BLANKS.match(self.text, self.at):
                self.at = blanks.end()
            if not others or self.peek() not in others or not self.peek():
                return
            self.at += 1

    def peek(self) -> str:
        return self.text[self.at] if self.at < len(self.text) else ""

    def take(self, operator: str) -> str:
        """Reads an operator, if it is the next one."""
        if not self.text.startswith(operator, self.at):
            return ""
        self.at += len(operator)
        return operator

    def keyword(self) -> str:
        """The next word if it is one that could be a keyword."""
        match = _KEYWORD.match(self.text, self.at)
        return match[0] if match is not None else ""

    def take_keyword(self, word: str) -> bool:
        if self.keyword() != word:
            return False
        self.at += len(word)
        self.skip()
        return True


# Integers

_INTEGER = re.compile(r"-?[0-9]{1,15}")


def integer(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise Unsupported(f'the number "{text[:100]}"')
    return int(text)


def calculate(words: list[str]) -> int:
    """Value of an integer, or of an operation on two."""
    if len(words) == 1:
        return integer(words[0])
    if len(words) == 3:
        left, operator, right = integer(words[0]), words[1], integer(words[2])
        if operator in ("/", "%") and right:
            quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
            return quotient if operator == "/" else left - quotient * right
        results = {"+": left + right, "-": left - right, "*": left * right}
        if operator in results:
            return results[operator]
    raise Unsupported(f"the calculation {' '.join(words)}"[:100])
