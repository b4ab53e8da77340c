#!/usr/bin/env python3
"""Make `docs/comparison.svg`, the speed of each verb against kube-apiserver and etcd, from docs/performance.md.

    python tools/make_comparison.py

A bar is the mean of the ratios of the runs in the table.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from statistics import mean

DOCS = Path(__file__).parent.parent / "docs"
TARGET = DOCS / "comparison.svg"
TITLE = "## Compared with kube-apiserver v1.36 and etcd"
WIDTH, LABEL, BAR, GAP, MARGIN = 760, 200, 20, 8, 14
_ROW = re.compile(r"^\| ([^|]+) \| [^|]+ \| [^|]+ \| ([\d., ]+) \|$", re.MULTILINE)


def ratios(page: str) -> dict[str, float]:
    """Workload → rate as a multiple of kube-apiserver's. The row about memory is not a rate."""
    section = page.partition(f"{TITLE}\n")[2].partition("\n## ")[0]
    rows = _ROW.findall(section)
    return {name: mean(map(float, runs.split(", "))) for name, runs in rows if "memory" not in name}


def draw(rows: dict[str, float]) -> str:
    unit = (WIDTH - LABEL - 2 * MARGIN - 60) / max(rows.values())
    top = MARGIN + 44
    height = top + len(rows) * (BAR + GAP) + MARGIN
    parts = [
        f'<text class="title" x="{MARGIN}" y="{MARGIN + 8}">Rate of Kubist / rate of kube-apiserver + etcd</text>'
    ]
    for place, (name, ratio) in enumerate(rows.items()):
        y = top + place * (BAR + GAP)
        length = ratio * unit
        parts += [
            f'<text class="label" x="{LABEL}" y="{y + 14}">{escape(name.partition(":")[0])}</text>',
            f'<rect class="bar" x="{LABEL + 10}" y="{y}" width="{length:.1f}" height="{BAR}" rx="3"/>',
            f'<text x="{LABEL + 16 + length:.1f}" y="{y + 14}">{ratio:.1f} ×</text>',
        ]
    equal = LABEL + 10 + unit
    parts += [
        f'<line class="equal" x1="{equal:.1f}" x2="{equal:.1f}" y1="{top - 6}" y2="{height - MARGIN}"/>',
        f'<text class="note" x="{equal + 4:.1f}" y="{top - 8}">kube-apiserver + etcd</text>',
    ]
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">
<style>
text {{ font: 13px system-ui, sans-serif; fill: #1f2933; }}
.title {{ font-weight: 600; }}
.label {{ text-anchor: end; }}
.bar {{ fill: #326ce5; }}
.equal {{ stroke: #d9822b; stroke-width: 2; }}
.note {{ fill: #a85b0a; font-size: 11px; }}
@media (prefers-color-scheme: dark) {{ text {{ fill: #dde3ea; }} .note {{ fill: #e8a860; }} }}
</style>
<rect width="100%" height="100%" fill="none"/>
{chr(10).join(parts)}
</svg>
"""


def main() -> None:
    TARGET.write_text(draw(ratios((DOCS / "performance.md").read_text())))
    print(f"wrote {TARGET.relative_to(DOCS.parent)}")


if __name__ == "__main__":
    main()
