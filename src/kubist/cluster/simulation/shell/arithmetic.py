"""Integers of simulated shell scripts."""

from __future__ import annotations

import re

from kubist.cluster.simulation.shell.errors import Unsupported

_INTEGER = re.compile(r"-?[0-9]{1,15}")


def integer(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise Unsupported(f'the number "{text[:100]}"')
    return int(text)


def calculate(words: list[str]) -> int:
    """Value of an integer, or of an operation on two."""
    if len(words) == 1:
        return integer(words[0])
    if len(words) == 3:
        left, operator, right = integer(words[0]), words[1], integer(words[2])
        if operator in ("/", "%") and right:
            quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
            return quotient if operator == "/" else left - quotient * right
        results = {"+": left + right, "-": left - right, "*": left * right}
        if operator in results:
            return results[operator]
    raise Unsupported(f"the calculation {' '.join(words)}"[:100])
