"""Integers in text, read as strictly as the API's clients in other languages read them."""

from __future__ import annotations

import re

_decimal = re.compile(r"[+-]?[0-9]{1,64}").fullmatch


def parse_int64(text: str) -> int | None:
    """The number that `text` spells in decimal digits, or None if it spells none of 64 bits."""
    if _decimal(text) is None:
        return None
    value = int(text)
    return value if -(2**63) <= value < 2**63 else None
