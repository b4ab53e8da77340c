"""Parser of the simple shell scripts that can be simulated: commands with `;`, `&&`, `||`, quotes, variables and
output redirection. Everything else is Unsupported."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

_KEYWORDS = frozenset(
    (
        "if",
        "then",
        "else",
        "elif",
        "fi",
        "for",
        "while",
        "until",
        "do",
        "done",
        "case",
        "esac",
        "function",
        "{",
        "}",
        "!",
        "[[",
    )
)
_name = re.compile(r"[A-Za-z_]\w*").match
_assignment = re.compile(r"([A-Za-z_]\w*)=").match

WORD_LIMIT = 128 * 1024
"""Longest argument or value of a variable, in characters, as in Linux."""

Expand = Callable[[str], str]
"""Value of a variable by name."""


class Unsupported(Exception):
    """The script or command cannot be simulated. The argument names the part that cannot."""


@dataclass(slots=True)
class Word:
    """Word of a command: literal text, and variables as (name,)."""

    parts: list[str | tuple[str]] = field(default_factory=list)

    def expand(self, value: Expand) -> str:
        """Text of the word. Raises Unsupported if it is longer than WORD_LIMIT."""
        found, size = [], 0
        for part in self.parts:
            text = part if isinstance(part, str) else value(part[0])
            size += len(text)
            if size > WORD_LIMIT:
                raise Unsupported("a word that long")
            found.append(text)
        return "".join(found)

    @property
    def literal(self) -> str:
        """Text of a word without variables, else an empty text."""
        return "".join(part for part in self.parts if isinstance(part, str))


@dataclass(slots=True)
class Redirect:
    """Redirection of stdout (1) or stderr (2) to a file, or to the other stream if `target` is None."""

    stream: int
    target: Word | None
    append: bool = False


@dataclass(slots=True)
class Step:
    """Simple command, and the operator before it: `;`, `&&` or `||`."""

    operator: str
    words: list[Word] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)

    def assignments(self) -> int:
        """Number of `NAME=value` words at the start."""
        count = 0
        while count < len(self.words) and (first := self.words[count].parts[:1]):
            if not isinstance(first[0], str) or not _assignment(first[0]):
                break
            count += 1
        return count


def parse(script: str) -> list[Step]:
    """Commands of a script. Raises Unsupported."""
    return _Parser(script).parse()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0

    def parse(self) -> list[Step]:
        steps: list[Step] = []
        step = Step(";")
        while self._skip_blanks():
            char = self._peek()
            if char in ";\n":
                self._place += 1
                step = self._next(steps, step, ";")
            elif self._text.startswith(("&&", "||"), self._place):
                if not step.words:
                    raise Unsupported(self._text[self._place : self._place + 2])
                operator = self._text[self._place : self._place + 2]
                self._place += 2
                step = self._next(steps, step, operator)
            elif redirect := self._redirect():
                step.redirects.append(redirect)
            elif char in "|&()<`":
                raise Unsupported(char)
            else:
                word = self._word()
                if not step.words and word.literal in _KEYWORDS:
                    raise Unsupported(word.literal)
                step.words.append(word)
        self._next(steps, step, ";")
        return steps

    def _next(self, steps: list[Step], step: Step, operator: str) -> Step:
        if step.words or step.redirects:
            steps.append(step)
        return Step(operator)

    def _peek(self) -> str:
        return self._text[self._place] if self._place < len(self._text) else ""

    def _skip_blanks(self) -> bool:
        """Moves to the next token. False at the end."""
        while (char := self._peek()) and char in " \t\r":
            self._place += 1
        if char == "#":
            end = self._text.find("\n", self._place)
            self._place = len(self._text) if end < 0 else end
        return self._place < len(self._text)

    def _redirect(self) -> Redirect | None:
        match = re.compile(r"([12]?)(>>|>&|>)[ \t]*").match(self._text, self._place)
        if match is None:
            return None
        self._place = match.end()
        stream = int(match[1] or 1)
        if match[2] == ">&":
            if self._peek() not in "12" or not self._peek():
                raise Unsupported(match[0])
            self._place += 1
            return Redirect(stream, None)
        target = self._word()
        if not target.parts:
            raise Unsupported(match[0])
        return Redirect(stream, target, match[2] == ">>")

    def _word(self) -> Word:
        word = Word()
        while (char := self._peek()) and char not in " \t\r\n;|&()<>`":
            self._place += 1
            if char == "'":
                word.parts.append(self._until("'"))
            elif char == '"':
                self._quoted(word)
            elif char == "\\":
                word.parts.append(self._peek())
                self._place += 1
            elif char == "$":
                self._variable(word)
            else:
                word.parts.append(char)
        _join(word)
        return word

    def _until(self, end: str) -> str:
        stop = self._text.find(end, self._place)
        if stop < 0:
            raise Unsupported(f"unterminated {end}")
        text, self._place = self._text[self._place : stop], stop + 1
        return text

    def _quoted(self, word: Word) -> None:
        word.parts.append("")
        while (char := self._peek()) != '"':
            if not char:
                raise Unsupported('unterminated "')
            self._place += 1
            if char == "$":
                self._variable(word)
            elif char == "`":
                raise Unsupported(char)
            elif char == "\\" and self._peek() in '"\\$`':
                word.parts.append(self._peek())
                self._place += 1
            else:
                word.parts.append(char)
        self._place += 1

    def _variable(self, word: Word) -> None:
        char = self._peek()
        if char == "?":
            self._place += 1
            word.parts.append(("?",))
        elif char == "{":
            self._place += 1
            name = self._until("}")
            if not re.fullmatch(r"[A-Za-z_]\w*", name):
                raise Unsupported(f"${{{name}}}")
            word.parts.append((name,))
        elif match := _name(self._text, self._place):
            self._place = match.end()
            word.parts.append((match[0],))
        elif char in "(@*#!$0123456789" and char:
            raise Unsupported(f"${char}")
        else:
            word.parts.append("$")


def _join(word: Word) -> None:
    """Joins literal neighbours."""
    joined: list[str | tuple[str]] = []
    text: list[str] = []
    for part in word.parts:
        if isinstance(part, str):
            text.append(part)
            continue
        if text:
            joined.append("".join(text))
            text = []
        joined.append(part)
    if text:
        joined.append("".join(text))
    word.parts = joined
