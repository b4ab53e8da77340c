"""Ranges of sizes and costs, for static cost estimation. Arithmetic saturates at 2^64-1."""

from __future__ import annotations

import math
from typing import NamedTuple

MAX = (1 << 64) - 1


class Range(NamedTuple):
    """Minimum and maximum of a size or a cost."""

    least: int
    most: int

    def plus(self, other: Range) -> Range:
        return Range(min(self.least + other.least, MAX), min(self.most + other.most, MAX))

    def times(self, other: Range) -> Range:
        return Range(min(self.least * other.least, MAX), min(self.most * other.most, MAX))

    def scaled(self, factor: float) -> Range:
        return Range(_scale(self.least, factor), _scale(self.most, factor))

    def union(self, other: Range) -> Range:
        return Range(min(self.least, other.least), max(self.most, other.most))


def _scale(value: int, factor: float) -> int:
    scaled = float(value) * factor
    return MAX if scaled >= 18446744073709551616.0 or (scaled <= 0 and value > 0) else math.ceil(scaled)


UNKNOWN = Range(0, MAX)
ONE = Range(1, 1)
ZERO = Range(0, 0)
