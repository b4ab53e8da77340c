"""Escaping of field names that are not CEL identifiers: keywords, `__`, dots, dashes and slashes."""

from __future__ import annotations

import re

KEYWORDS = frozenset(
    (
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    )
)
_PARTS = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_BACK = {escaped: plain for plain, escaped in _PARTS.items()}
_ESCAPABLE = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*")
_escape = re.compile(r"__|[./-]").sub
_unescape = re.compile("__underscores__|__dot__|__dash__|__slash__").sub


def escape(name: str) -> str | None:
    """Escaped name of a field; None if expressions cannot name it."""
    if name in KEYWORDS:
        return f"__{name}__"
    if not _ESCAPABLE.fullmatch(name):
        return None
    return _escape(lambda match: _PARTS[match[0]], name)


def unescape(name: str) -> str:
    if "__" not in name:
        return name
    if name[2:-2] in KEYWORDS and name == f"__{name[2:-2]}__":
        return name[2:-2]
    return _unescape(lambda match: _BACK[match[0]], name)
