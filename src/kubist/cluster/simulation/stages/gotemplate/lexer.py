"""Text and actions of a template, and the tokens of an action."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from kubist.cluster.simulation.stages.limits import StageError

_TOKEN = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<string>"(?:[^"\\\n]|\\.)*")
  | (?P<raw>`[^`]*`)
  | (?P<char>'(?:[^'\\\n]|\\[^\n]+?)')
  | (?P<number>[+-]?(?:0[xXoObB][0-9a-fA-F_]+|(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)(?![A-Za-z_]))
  | (?P<field>\.[A-Za-z_][A-Za-z0-9_]*)
  | (?P<variable>\$(?:[A-Za-z_][A-Za-z0-9_]*)?)
  | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<symbol>:=|[=|(),.])
    """,
    re.VERBOSE,
)
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:([0-7]{3})|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_ESCAPES = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    '"': '"',
    "'": "'",
}


class Token(NamedTuple):
    kind: str
    """string, char, number, field, variable, word, symbol, or `end` after the last one."""
    text: str
    spaced: bool = False
    """Whether white space comes before it."""


END = Token("end", "")


class Action(NamedTuple):
    line: int
    tokens: list[Token]


def split(source: str) -> list[str | Action]:
    """Text and actions, with the white space trimmed that `{{-` and `-}}` ask for."""
    found: list[str | Action] = []
    at, trim = 0, False
    while True:
        start = source.find("{{", at)
        text = source[at:] if start < 0 else source[at:start]
        left = start >= 0 and source[start + 2 : start + 3] == "-" and source[start + 3 : start + 4].isspace()
        text = text.lstrip() if trim else text
        text = text.rstrip() if left else text
        if text:
            found.append(text)
        if start < 0:
            return found
        line = source.count("\n", 0, start) + 1
        try:
            tokens, at, trim = _action(source, start + (3 if left else 2))
        except StageError as error:
            raise StageError(f"line {line}: {error}") from None
        if tokens:
            found.append(Action(line, tokens))


def _action(source: str, at: int) -> tuple[list[Token], int, bool]:
    """Tokens of an action, the position after it, and whether it trims the text that follows. A comment has no
    tokens."""
    tokens: list[Token] = []
    spaced = False
    comment = re.compile(r"\s*").match(source, at)
    assert comment is not None
    if source.startswith("/*", comment.end()):
        end = _COMMENT.match(source, comment.end())
        if end is None:
            raise StageError("a comment is not closed")
        at = end.end()
        trim = re.compile(r"\s-\}\}").match(source, at)
        if trim is not None:
            return [], trim.end(), True
        if not source.startswith("}}", at):
            raise StageError("a comment ends before the closing delimiter")
        return [], at + 2, False
    while True:
        if source.startswith("}}", at):
            if not tokens:
                raise StageError("an action is empty")
            return tokens, at + 2, False
        if spaced and source.startswith("-}}", at):
            if not tokens:
                raise StageError("an action is empty")
            return tokens, at + 3, True
        match = _TOKEN.match(source, at)
        if match is None:
            if at >= len(source):
                raise StageError("an action is not closed")
            raise StageError(f"unexpected {source[at]!r} in an action")
        kind, text = match.lastgroup or "", match.group()
        at = match.end()
        if kind == "space":
            spaced = True
            continue
        if kind == "string":
            text = unescape(text[1:-1])
        elif kind == "raw":
            kind, text = "string", text[1:-1]
        elif kind == "char":
            text = unescape(text[1:-1])
            if len(text) != 1:
                raise StageError("a character constant has more than one character")
        tokens.append(Token(kind, text, spaced))
        spaced = False


def unescape(text: str) -> str:
    """Content of a Go string literal."""

    def replace(match: re.Match[str]) -> str:
        octal, hexadecimal, short, long, char = match.groups()
        if char is not None:
            if char not in _ESCAPES:
                raise StageError(f"unknown escape sequence \\{char} in {json.dumps(text)[:60]}")
            return _ESCAPES[char]
        code = int(octal, 8) if octal else int(hexadecimal or short or long, 16)
        if code > 0x10FFFF or 0xD800 <= code < 0xE000:
            raise StageError("an escape sequence is no character")
        return chr(code)

    return _ESCAPE.sub(replace, text)
