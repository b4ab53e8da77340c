"""JSON syntax errors in the words of Go's scanner. Runs only when a body is rejected.

Also Go's repair of text: each byte that is not UTF-8 and each lone surrogate becomes U+FFFD.
"""

from __future__ import annotations

import re

_BLANKS = b" \t\r\n"
_STRING = re.compile(rb'[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*')


_SCALAR = (
    rb'(?:"%b"|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null|\[\]|\{\})'
    % _STRING.pattern
)
_ITEMS = re.compile(rb"(?:[ \t\r\n]*%b[ \t\r\n]*,){0,1000}" % _SCALAR)
_PAIRS = re.compile(
    rb'(?:[ \t\r\n]*"%b"[ \t\r\n]*:[ \t\r\n]*%b[ \t\r\n]*,){0,1000}' % (_STRING.pattern, _SCALAR)
)
"""Up to 1000 well-formed simple items with their commas. They are skipped in one step, because a body may have a
million. Each item takes memory until the end of the step: without the limit 90 MB for a body of 256 KB. The possessive
`*+` takes none, but before Python 3.11.5 it matches too much."""
_MAX_DEPTH = 10_000
_ESCAPED = re.compile("[\udc80-\udcff]")


def text_of(data: bytes) -> str:
    """Bytes as text. Invalid UTF-8 becomes U+FFFD."""
    if data.isascii():
        return data.decode()
    try:
        return data.decode()
    except UnicodeDecodeError:
        return _ESCAPED.sub("\ufffd", data.decode(errors="surrogateescape"))


def replace_surrogates(text: str) -> str:
    """Text with escapes of lone surrogates replaced by U+FFFD."""
    if "\\u" not in text:
        return text
    return re.sub(
        r"\\\\|(?:\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|\\u[dD][89a-fA-F]..",
        _mend,
        text,
    )


def _mend(match: re.Match[str]) -> str:
    text = match.group()
    return "\\ufffd" if len(text) == 6 else text


EXPLAINED = 1 << 18
"""Maximum size in bytes of a text whose syntax error is located, because the search is slow."""


def complaint(body: bytes) -> str:
    """First syntax error of a text. Without one, the text is nested too deeply."""
    if len(body) > EXPLAINED:
        return "invalid JSON"
    try:
        end = _value(body, _skip(body, 0))
        end = _skip(body, end)
        if end < len(body):
            return f"invalid character {_quote(body, end)} after top-level value"
    except _SyntaxError as error:
        return str(error)
    return "exceeded max depth"


class _SyntaxError(Exception):
    pass


def _value(body: bytes, at: int) -> int:
    stack: list[bytes] = []
    while True:
        char = body[at : at + 1]
        if char == b"{":
            at = _skip(body, at + 1)
            if body[at : at + 1] != b"}":
                stack.append(b"}")
                _check_depth(stack, char)
                at = _key(body, _pass(_PAIRS, body, at), "looking for beginning of object key string")
                continue
            at += 1
        elif char == b"[":
            at = _skip(body, at + 1)
            if body[at : at + 1] != b"]":
                stack.append(b"]")
                _check_depth(stack, char)
                at = _pass(_ITEMS, body, at)
                continue
            at += 1
        else:
            at = _literal(body, at)
        while stack:
            at = _skip(body, at)
            closer = stack[-1]
            if body[at : at + 1] == closer:
                stack.pop()
                at += 1
                continue
            if body[at : at + 1] != b",":
                where = "object key:value pair" if closer == b"}" else "array element"
                raise _wrong(body, at, f"after {where}")
            at = _pass(_PAIRS if closer == b"}" else _ITEMS, body, at + 1)
            if closer == b"}":
                at = _key(body, at, "looking for beginning of object key string")
            break
        else:
            return at


def _check_depth(stack: list[bytes], char: bytes) -> None:
    if len(stack) > _MAX_DEPTH:
        raise _SyntaxError(f"invalid character '{char.decode()}' exceeded max depth")


def _pass(run: re.Pattern[bytes], body: bytes, at: int) -> int:
    while (match := run.match(body, at)) and match.end() > at:
        at = match.end()
    return _skip(body, at)


def _key(body: bytes, at: int, context: str) -> int:
    if body[at : at + 1] != b'"':
        raise _wrong(body, at, context)
    at = _skip(body, _string(body, at))
    if body[at : at + 1] != b":":
        raise _wrong(body, at, "after object key")
    return _skip(body, at + 1)


def _literal(body: bytes, at: int) -> int:
    char = body[at : at + 1]
    if char == b'"':
        return _string(body, at)
    for word in (b"true", b"false", b"null"):
        if char == word[:1]:
            for offset in range(1, len(word)):
                if body[at + offset : at + offset + 1] != word[offset : offset + 1]:
                    expected = f"in literal {word.decode()} (expecting {chr(word[offset])!r})"
                    raise _wrong(body, at + offset, expected)
            return at + len(word)
    if char == b"-" or char.isdigit():
        return _number(body, at)
    raise _wrong(body, at, "looking for beginning of value")


def _string(body: bytes, at: int) -> int:
    match = _STRING.match(body, at + 1)
    assert match
    end = match.end()
    if body[end : end + 1] == b'"':
        return end + 1
    if body[end : end + 1] != b"\\":
        raise _wrong(body, end, "in string literal")
    if body[end + 1 : end + 2] != b"u":
        raise _wrong(body, end + 1, "in string escape code")
    while body[end + 2 : end + 3].isalnum() and body[end + 2 : end + 3] in b"0123456789abcdefABCDEF":
        end += 1
    raise _wrong(body, end + 2, "in \\u hexadecimal character escape")


def _number(body: bytes, at: int) -> int:
    if body[at : at + 1] == b"-":
        at += 1
        if not body[at : at + 1].isdigit():
            raise _wrong(body, at, "in numeric literal")
    if body[at : at + 1] == b"0":
        at += 1
    else:
        at = _digits(body, at)
    if body[at : at + 1] == b".":
        if not body[at + 1 : at + 2].isdigit():
            raise _wrong(body, at + 1, "after decimal point in numeric literal")
        at = _digits(body, at + 1)
    if body[at : at + 1] in (b"e", b"E"):
        at += 1
        if body[at : at + 1] in (b"+", b"-"):
            at += 1
        if not body[at : at + 1].isdigit():
            raise _wrong(body, at, "in exponent of numeric literal")
        at = _digits(body, at)
    return at


def _digits(body: bytes, at: int) -> int:
    while body[at : at + 1].isdigit():
        at += 1
    return at


def _skip(body: bytes, at: int) -> int:
    while body[at : at + 1] and body[at] in _BLANKS:
        at += 1
    return at


def _wrong(body: bytes, at: int, context: str) -> _SyntaxError:
    if at >= len(body):
        return _SyntaxError("unexpected end of JSON input")
    return _SyntaxError(f"invalid character {_quote(body, at)} {context}")


def _quote(body: bytes, at: int) -> str:
    char = chr(body[at])
    if char == "'":
        return r"'\''"
    if char == '"':
        return "'\"'"
    if char in "\n\t\r\\\a\b\f\v":
        return (
            "'"
            + {
                "\n": r"\n",
                "\t": r"\t",
                "\r": r"\r",
                "\\": r"\\",
                "\a": r"\a",
                "\b": r"\b",
                "\f": r"\f",
                "\v": r"\v",
            }[char]
            + "'"
        )
    if ord(char) < 0x20 or ord(char) == 0x7F:
        return f"'\\x{ord(char):02x}'"
    if 0x80 <= ord(char) < 0xA0:
        return f"'\\u{ord(char):04x}'"
    return f"'{char}'"
