"""Tokens of jq."""

from __future__ import annotations

import re
from typing import NamedTuple

from kubist.cluster.simulation.stages.limits import MAX_DEPTH, StageError

_TOKEN = re.compile(
    r"""
    (?P<space>(?:\s|\#[^\n]*)+)
  | (?P<field>\.[A-Za-z_][A-Za-z0-9_]*)
  | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
  | (?P<word>[A-Za-z_][A-Za-z0-9_]*(?:::[A-Za-z_][A-Za-z0-9_]*)*)
  | (?P<variable>\$[A-Za-z_][A-Za-z0-9_]*)
  | (?P<format>@[A-Za-z0-9_]+)
  | (?P<quote>")
  | (?P<symbol>\?//=?|//=?|\|=|[-+*/%=!<>]=|\.\.|[-+*/%=<>|,.:;?()\[\]{}])
    """,
    re.VERBOSE,
)
_PLAIN = re.compile(r'[^"\\]+')
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\\": "\\", '"': '"', "/": "/"}


class Token(NamedTuple):
    kind: str
    """space, field, number, word, variable, format, string or symbol; `end` after the last one."""
    text: str
    """Text of the token; of a string its content, unless it has parts."""
    parts: tuple[str | tuple[Token, ...], ...] = ()
    """Parts of a string with interpolation: text, and the tokens of each expression."""


END = Token("end", "")


class Lexer:
    def __init__(self, source: str) -> None:
        self.source = source
        self.at = 0
        self._interpolations = 0

    def tokens(self, closing: bool = False) -> list[Token]:
        """All tokens; with `closing`, those before the parenthesis that ends an interpolation."""
        found: list[Token] = []
        depth = 0
        while self.at < len(self.source):
            match = _TOKEN.match(self.source, self.at)
            if match is None:
                raise StageError(f"unexpected character {self.source[self.at]!r}")
            self.at = match.end()
            kind, text = match.lastgroup or "", match.group()
            if kind == "space":
                continue
            if kind == "quote":
                found.append(self._string())
                continue
            if kind == "symbol" and text == "(":
                depth += 1
            elif kind == "symbol" and text == ")":
                if closing and depth == 0:
                    return found
                depth -= 1
            found.append(Token(kind, text))
        if closing:
            raise StageError("an interpolation in a string is not closed")
        return found

    def _string(self) -> Token:
        parts: list[str | tuple[Token, ...]] = []
        text: list[str] = []
        while self.at < len(self.source):
            plain = _PLAIN.match(self.source, self.at)
            if plain is not None:
                text.append(plain.group())
                self.at = plain.end()
                continue
            if self.source[self.at] == '"':
                self.at += 1
                whole = "".join(text)
                return Token("string", whole, (*parts, whole) if parts else ())
            escape = self.source[self.at + 1 : self.at + 2]
            self.at += 2
            if escape == "(":
                self._interpolations += 1
                if self._interpolations > MAX_DEPTH:
                    raise StageError(f"there are more than {MAX_DEPTH} interpolations in strings")
                parts += ["".join(text), tuple(self.tokens(closing=True))]
                text = []
            elif escape == "u":
                text.append(self._unicode())
            elif escape in _ESCAPES:
                text.append(_ESCAPES[escape])
            else:
                raise StageError(f"unknown escape sequence \\{escape} in a string")
        raise StageError("a string is not closed")

    def _unicode(self) -> str:
        code = self._hexadecimal()
        if 0xD800 <= code < 0xDC00 and self.source[self.at : self.at + 2] == "\\u":
            self.at += 2
            low = self._hexadecimal()
            if 0xDC00 <= low < 0xE000:
                return chr(0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00))
        return "\ufffd" if 0xD800 <= code < 0xE000 else chr(code)

    def _hexadecimal(self) -> int:
        digits = self.source[self.at : self.at + 4]
        if not re.fullmatch("[0-9A-Fa-f]{4}", digits):
            raise StageError("\\u in a string needs four hexadecimal digits")
        self.at += 4
        return int(digits, 16)
