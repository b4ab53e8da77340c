"""Integers of simulated shell scripts."""

from __future__ import annotations

import re

from kubist.simulation.shell_syntax import Unknown

_INTEGER = re.compile(r"-?[0-9]{1,15}")


def integer(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise Unknown
    return int(text)


def calculate(words: list[str]) -> int:
    if len(words) == 1:
        return integer(words[0])
    if len(words) != 3:
        raise Unknown
    left, operator, right = integer(words[0]), words[1], integer(words[2])
    if operator in ("/", "%"):
        if not right:
            raise Unknown
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return quotient if operator == "/" else left - quotient * right
    results = {"+": left + right, "-": left - right, "*": left * right}
    if operator not in results:
        raise Unknown
    return results[operator]
