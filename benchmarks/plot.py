"""Draws the results of `growth.py --save`: one small chart for each cost, on logarithmic scales.

    python benchmarks/plot.py FILE=LABEL … > docs/growth.svg

A flat line is a cost that does not depend on the number of objects. The dashed line is proportional to it.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

CHARTS = {
    "get": "get, CPU ms",
    "create": "create, CPU ms",
    "warm": "100 by a label, CPU ms",
    "pages": "a write and an old page, CPU ms",
    "list": "whole list, CPU ms",
    "start": "start, CPU s",
    "used": "memory, MB",
}
WIDTH, HEIGHT, MARGIN, ACROSS = 220, 150, 34, 4
COLOURS = ("#326ce5", "#d9822b", "#2e8540")
FIRST, LAST = 3.5, 5.9
"""Sizes, as powers of ten."""

Series = dict[str, list[dict[str, float]]]


def chart(title: str, name: str, series: Series) -> str:
    values = [row[name] for rows in series.values() for row in rows]
    low = math.floor(math.log10(min(values)) - 0.3)
    high = max(low + 2, math.ceil(math.log10(max(values)) + 0.3))

    def x(size: float) -> float:
        return MARGIN + (math.log10(size) - FIRST) / (LAST - FIRST) * (WIDTH - MARGIN - 10)

    def y(value: float) -> float:
        return HEIGHT - 22 - (math.log10(value) - low) / (high - low) * (HEIGHT - 44)

    parts = [f'<text x="{MARGIN}" y="12" class="t">{title}</text>']
    for power in range(low, high + 1):
        level, shown = y(10**power), f"{10**power:g}"
        parts.append(f'<path d="M{MARGIN} {level:.1f}H{WIDTH - 10}" class="g"/>')
        parts.append(f'<text x="{MARGIN - 4}" y="{level + 3:.1f}" class="e">{shown}</text>')
    for size, shown in ((5_000, "5k"), (50_000, "50k"), (500_000, "500k")):
        parts.append(f'<text x="{x(size):.1f}" y="{HEIGHT - 8}" class="m">{shown}</text>')
    for colour, rows in zip(COLOURS, series.values(), strict=False):
        points = [(x(row["objects"]), y(row[name])) for row in rows]
        line = " ".join(f"{across:.1f},{up:.1f}" for across, up in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        parts += [
            f'<circle cx="{across:.1f}" cy="{up:.1f}" r="2.5" fill="{colour}"/>' for across, up in points
        ]
    first = next(iter(series.values()))[0]
    top = min(10**high, first[name] * 10**LAST / first["objects"])
    end = first["objects"] * top / first[name]
    parts.append(
        f'<path d="M{x(first["objects"]):.1f} {y(first[name]):.1f}L{x(end):.1f} {y(top):.1f}" class="d"/>'
    )
    return "".join(parts)


def draw(series: Series) -> str:
    rows = -(-len(CHARTS) // ACROSS)
    style = (
        "text{font:10px sans-serif;fill:#444}.t{font-weight:bold}.e{text-anchor:end}.m{text-anchor:middle}"
        ".g{stroke:#ddd}.d{stroke:#999;stroke-dasharray:3 3}"
    )
    size = f'width="{ACROSS * WIDTH}" height="{rows * HEIGHT}"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{style}</style>']
    parts.append(f'<rect {size} fill="#fff"/>')
    for place, (name, title) in enumerate(CHARTS.items()):
        across, down = place % ACROSS * WIDTH, place // ACROSS * HEIGHT
        parts.append(f'<g transform="translate({across} {down})">{chart(title, name, series)}</g>')
    across, down = len(CHARTS) % ACROSS * WIDTH + MARGIN, (rows - 1) * HEIGHT + 40
    for place, (label, colour) in enumerate(zip(series, COLOURS, strict=False)):
        parts.append(f'<circle cx="{across}" cy="{down + 18 * place - 3}" r="4" fill="{colour}"/>')
        parts.append(f'<text x="{across + 10}" y="{down + 18 * place}">{label}</text>')
    parts.append(f'<path d="M{across - 4} {down + 18 * len(series) - 3}h12" class="d"/>')
    parts.append(
        f'<text x="{across + 14}" y="{down + 18 * len(series)}">as the number of objects</text></svg>'
    )
    return "\n".join(parts)


if __name__ == "__main__":
    named = [argument.partition("=") for argument in sys.argv[1:]]
    print(draw({label or file: json.loads(Path(file).read_text()) for file, _, label in named}))
