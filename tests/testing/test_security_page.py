"""docs/security.md names a test for each guarantee; every one of them exists."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "security.md").read_text("utf-8")


def test_every_named_test_exists() -> None:
    sources = {path: path.read_text("utf-8") for path in TESTS.rglob("*.py")}
    modules = {path.stem for path in sources}
    functions = {name for text in sources.values() for name in re.findall(r"def (test_\w+)", text)}
    named = set(re.findall(r"\btest_\w+", PAGE))
    assert len(named) > 30
    assert named - modules - functions == set()
