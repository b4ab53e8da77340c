"""CONTRIBUTING.md answers questions with files; every one of them exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_named_source_file_exists() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    named = re.findall(r"\| `([\w/]+\.py)` \|", page)
    assert len(named) >= 10
    assert [name for name in named if not (ROOT / "src/kubist" / name).is_file()] == []
