"""Sets of expected tokens in the format of the reference's syntax errors."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

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
    shown: list[str] = []
    for kind in _ORDER:
        if kind == "constant" and kind in known:
            shown += _CONSTANTS
        elif kind in known:
            shown.append(_NAMES.get(kind, f"'{kind}'"))
    return f"{{{', '.join(shown)}}}"
