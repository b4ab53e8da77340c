"""Tokenizer of expressions, and the names of tokens in syntax errors."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

from kubist.model.cel.errors import CompileError
from kubist.model.cel.values import Uint
from kubist.model.meta.numerals import decimal


class Token(NamedTuple):
    kind: str
    """ident, int, uint, double, string, bytes, quoted, an operator, or end."""
    value: Any
    at: int
    text: str = "<EOF>"


_SEQUENCE = r"\\(?:[abfnrtv\\?\"'`]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2})"
_LONG = rf'"""(?:[^\\]|{_SEQUENCE})*?"""|\'\'\'(?:[^\\]|{_SEQUENCE})*?\'\'\''
_STRING = rf'[bB]?(?:{_LONG}|"(?:[^"\\\r\n]|{_SEQUENCE})*"|\'(?:[^\'\\\r\n]|{_SEQUENCE})*\')'
_RAW = r'(?:[rR][bB]?|[bB][rR])(?:"""(?:.|\n)*?"""|\'\'\'(?:.|\n)*?\'\'\'|"[^"\r\n]*"|\'[^\'\r\n]*\')'
_TOKEN = re.compile(
    rf"""(?P<space>[ \t\r\n\f]+|//[^\n]*)
    |(?P<raw>{_RAW})
    |(?P<string>{_STRING})
    |(?P<double>(?:\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?))
    |(?P<hex>0x[0-9a-fA-F]+[uU]?)
    |(?P<int>\d+[uU]?)
    |(?P<ident>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<quoted>`[A-Za-z0-9_.\-/ ]+`)
    |(?P<op>==|!=|<=|>=|&&|\|\||[-+*/%!<>?:.,()\[\]{{}}])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(
    r"\\(?:([abfnrtv\\?\"'`])|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.?))",
    re.DOTALL,
)
_BEGUN = re.compile(
    rf"""(?:'(?:[^'\\\r\n]|{_SEQUENCE})*|"(?:[^"\\\r\n]|{_SEQUENCE})*)
    (?:\\(?:[xX][0-9a-fA-F]?|u[0-9a-fA-F]{{0,3}}|U[0-9a-fA-F]{{0,7}}|[0-3][0-7]?)?)?
    |`[A-Za-z0-9_.\-/ ]*|[|&=]""",
    re.VERBOSE,
)
"""Start of an incomplete token."""
_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def tokenize(text: str) -> tuple[list[Token], list[CompileError]]:
    """Tokens of a text, and an error for every part that is not a token."""
    tokens: list[Token] = []
    errors: list[CompileError] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            begun = _BEGUN.match(text, position)
            end = (begun.end() if begun else position) + 1
            what = f"Syntax error: token recognition error at: '{text[position:end]}'"
            errors.append(CompileError(what, position))
            position = end
            continue
        kind = match.lastgroup
        word = match[0]
        position = match.end()
        at = match.start()
        if kind == "space":
            continue
        if kind in ("string", "raw"):
            try:
                tokens.append(_string(word, at)._replace(text=word))
            except CompileError as error:
                errors.append(error)
                tokens.append(Token("string", "", at, word))
        elif kind == "double":
            tokens.append(Token("double", float(word), at, word))
        elif kind in ("int", "hex"):
            unsigned = word[-1] in "uU"
            digits = word.rstrip("uU")
            number = int(digits, 16) if kind == "hex" else decimal(digits)
            kind, value = ("uint", Uint(number)) if unsigned else ("int", number)
            tokens.append(Token(kind, value, at, word))
        elif kind == "ident":
            tokens.append(Token("in" if word == "in" else "ident", word, at, word))
        elif kind == "quoted":
            tokens.append(Token("quoted", word[1:-1], at, word))
        else:
            tokens.append(Token(word, word, at, word))
    tokens.append(Token("end", "", len(text)))
    return tokens, errors


def _string(word: str, at: int) -> Token:
    prefix = ""
    while word[0] in "rRbB":
        prefix += word[0].lower()
        word = word[1:]
    triple = word.startswith(('"""', "'''")) and len(word) >= 6
    inner = word[3:-3] if triple else word[1:-1]
    is_bytes = "b" in prefix
    if "r" in prefix:
        return Token("bytes" if is_bytes else "string", inner.encode() if is_bytes else inner, at)
    if is_bytes:
        return Token("bytes", _unescaped_bytes(inner, at), at)
    return Token("string", _ESCAPE.sub(lambda match: _character(match, at), inner), at)


def _character(match: re.Match[str], at: int) -> str:
    if match[1]:
        return _SIMPLE.get(match[1], match[1])
    digits = match[2] or match[3] or match[4]
    if digits:
        code = int(digits, 16)
        if 0xD800 <= code < 0xE000 or code > 0x10FFFF:
            raise CompileError("invalid unicode code point", at)
        return chr(code)
    if match[5]:
        return chr(int(match[5], 8))
    raise CompileError("unable to unescape string", at)


def _unescaped_bytes(inner: str, at: int) -> bytes:
    out = bytearray()
    position = 0
    for match in _ESCAPE.finditer(inner):
        out += inner[position : match.start()].encode()
        position = match.end()
        if match[3] or match[4]:
            raise CompileError("unable to unescape string", at)
        if match[2] or match[5]:
            out.append(int(match[2], 16) if match[2] else int(match[5], 8))
        else:
            out += _character(match, at).encode()
    return bytes(out + inner[position:].encode())


_CONSTANTS = ("'true'", "'false'", "'null'")
_ORDER = (
    *("[", "]", "{", "}", "(", ")", ".", ",", "-", "!", "?", ":"),
    *("constant", "double", "int", "uint", "string", "bytes", "ident", "quoted"),
)
_NAMES = {
    "double": "NUM_FLOAT",
    "int": "NUM_INT",
    "uint": "NUM_UINT",
    "string": "STRING",
    "bytes": "BYTES",
    "ident": "IDENTIFIER",
    "quoted": "ESC_IDENTIFIER",
    "end": "<EOF>",
}


class Mismatch(Exception):
    """The parser cannot repair the syntax error at this token. The error is already reported."""


def listed(kinds: AbstractSet[str]) -> str:
    """Kinds of tokens in grammar order. Where a literal is expected, the constants true, false and null are
    listed too."""
    if len(kinds) == 1:
        (kind,) = kinds
        return _NAMES.get(kind, f"'{kind}'")
    known = {*kinds, "constant"} if "int" in kinds else kinds
    names: list[str] = []
    for kind in _ORDER:
        if kind == "constant" and kind in known:
            names += _CONSTANTS
        elif kind in known:
            names.append(_NAMES.get(kind, f"'{kind}'"))
    return f"{{{', '.join(names)}}}"
