"""Aligned columns, sizes and durations for people."""

from __future__ import annotations

from collections.abc import Sequence

from kubist.base.terminal import paint

_UNITS = ("KB", "MB", "GB", "TB")


def aligned(rows: Sequence[tuple[str, str]], style: str = "dim") -> list[str]:
    """Lines with a name and a text each. The names have a style on terminals."""
    width = max((len(name) for name, _ in rows), default=0)
    return [f"  {paint(name, style)}{' ' * (width - len(name) + 2)}{text}" for name, text in rows]


def size(count: int) -> str:
    """`512 B`, `1.5 MB`."""
    if count < 1000:
        return f"{count} B"
    number = float(count)
    for unit in _UNITS:
        number /= 1000
        if number < 999.5 or unit == _UNITS[-1]:
            break
    return f"{number:.1f} {unit}"
