"""Prints a summary of the coverage that `make test` measured: the total, and the packages with the least.

python tools/coverage_summary.py COVERAGE.json
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

SHOWN = 5
"""Number of packages with the least coverage that are shown."""


def summary(coverage: dict[str, Any]) -> str:
    covered: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for path, found in coverage["files"].items():
        package = _package(path)
        covered[package] += len(found["executed_lines"])
        lines[package] += len(found["executed_lines"]) + len(found["missing_lines"])
    least = sorted((package for package in lines if lines[package]), key=lambda p: covered[p] / lines[p])[
        :SHOWN
    ]
    shown = ", ".join(f"{package} {_percent(covered[package], lines[package])}" for package in least)
    return f"coverage: {_percent(covered.total(), lines.total())} of {lines.total()} lines; least: {shown}"


def _package(path: str) -> str:
    """`api/kinds` for src/kubist/api/kinds/core/pod.py, `storage` for src/kubist/storage/cache/cache.py."""
    parts = Path(path).parts
    return "/".join(parts[parts.index("kubist") + 1 : -1][:2]) or parts[-1].removesuffix(".py")


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / max(whole, 1):.1f} %"


if __name__ == "__main__":
    print(summary(json.loads(Path(sys.argv[1]).read_bytes())))
