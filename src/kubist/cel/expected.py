"""Sets of expected tokens, as syntax errors list them."""

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
    """A token that cannot be skipped nor made up for. It was reported."""


def listed(kinds: AbstractSet[str]) -> str:
    """Kinds of tokens in the order of the grammar; a name may be a constant wherever a literal may be."""
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
