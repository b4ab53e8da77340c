"""Integers in text, parsed as strictly as Go's strconv does."""

from __future__ import annotations

import re

_decimal = re.compile(r"[+-]?[0-9]{1,64}").fullmatch


def parse_int64(text: str) -> int | None:
    """Decimal 64-bit integer. None if `text` is not one."""
    if _decimal(text) is None:
        return None
    value = int(text)
    return value if -(2**63) <= value < 2**63 else None
